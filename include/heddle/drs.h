/* Dynamic resource sharing for C: the calls of seed 000 section 2.2.1 under heddle's prefix, and borrowing.
 *
 * See heddle/cores.hpp for what each call does, which threads may make it, and how callbacks run. Nothing is
 * thrown and errno is set only by heddle_drs_attach. A handle is a number in a pointer's clothes: it must not
 * be followed, NULL and a detached one are refused with HEDDLE_DRS_PERM, and nobody frees it. */
#ifndef HEDDLE_DRS_H
#define HEDDLE_DRS_H

#include <sched.h>

#define HEDDLE_DRS_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_drs heddle_drs_t;

/** What a call came to; negative: it had no effect. */
typedef enum {
    HEDDLE_DRS_SUCCESS = 0, /**< done */
    HEDDLE_DRS_NOTED = 1,   /**< under way; a callback follows, or somebody has still to leave */
    HEDDLE_DRS_NOUPDT = 2,  /**< nothing to do, or nothing to be had */
    HEDDLE_DRS_DISBLD = -4, /**< sharing is disabled: ignored */
    HEDDLE_DRS_PERM = -8,   /**< not the caller's to decide, no such CPU, a negative count, a null pointer */
    HEDDLE_DRS_REQST = -13  /**< too many requests wait for these CPUs */
} heddle_drs_ret_t;

typedef enum {
    HEDDLE_DRS_SET_NUM_THREADS, /**< void (*)(int count) */
    HEDDLE_DRS_SET_ACTIVE_MASK, /**< void (*)(const cpu_set_t *cpus) */
    HEDDLE_DRS_ADD_ACTIVE_MASK, /**< void (*)(const cpu_set_t *cpus) */
    HEDDLE_DRS_ENABLE_CPU,      /**< void (*)(int cpu) */
    HEDDLE_DRS_DISABLE_CPU      /**< void (*)(int cpu) */
} heddle_drs_callback_kind_t;

/** Any of the five, cast from its own type. */
typedef void (*heddle_drs_callback_t)(void);

/** Attaches to this process's sharing as the owner of `owned`; NULL or an empty set: it only borrows. NULL
 * and errno: EINVAL for a NULL name and for a HEDDLE_* variable with a value that it cannot have (`heddle run
 * -- true` then says which), EPERM where a CPU has an owner or is not in the machine, EAGAIN where
 * too many are attached, ENOMEM, EIO where the machine cannot be read. */
HEDDLE_DRS_API heddle_drs_t* heddle_drs_attach(const char* name, const cpu_set_t* owned);
/** Afterwards no callback of it runs, unless this is called from within one. */
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_detach(heddle_drs_t* drs);

HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_enable(heddle_drs_t* drs);
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_disable(heddle_drs_t* drs);
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_set_max_parallelism(heddle_drs_t* drs, int max);

/** `which` is a heddle_drs_callback_kind_t; any other number is refused. A NULL callback removes what is set.
 */
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_callback_set(heddle_drs_t* drs, int which,
                                                        heddle_drs_callback_t callback);
/** Gives what was set, or NULL. */
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_callback_get(heddle_drs_t* drs, int which,
                                                        heddle_drs_callback_t* callback);

HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_lend(heddle_drs_t* drs);
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_lend_cpu(heddle_drs_t* drs, int cpu);
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_lend_cpus(heddle_drs_t* drs, int count);
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_lend_cpu_mask(heddle_drs_t* drs, const cpu_set_t* cpus);

HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_reclaim(heddle_drs_t* drs);
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_reclaim_cpu(heddle_drs_t* drs, int cpu);
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_reclaim_cpus(heddle_drs_t* drs, int count);
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_reclaim_cpu_mask(heddle_drs_t* drs, const cpu_set_t* cpus);

HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_acquire(heddle_drs_t* drs);
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_acquire_cpu(heddle_drs_t* drs, int cpu);
/** A count of 0 drops all requests. */
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_acquire_cpus(heddle_drs_t* drs, int count);
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_acquire_cpu_mask(heddle_drs_t* drs, const cpu_set_t* cpus);

HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_borrow(heddle_drs_t* drs);
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_borrow_cpu(heddle_drs_t* drs, int cpu);
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_borrow_cpus(heddle_drs_t* drs, int count);
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_borrow_cpu_mask(heddle_drs_t* drs, const cpu_set_t* cpus);

HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_return_all(heddle_drs_t* drs);
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_return_cpu(heddle_drs_t* drs, int cpu);
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_return_cpus(heddle_drs_t* drs, int count);
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_return_cpu_mask(heddle_drs_t* drs, const cpu_set_t* cpus);

/** SUCCESS: the CPU is the caller's alone; NOTED: its to use, and another has still to leave; PERM: not its.
 */
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_check_cpu(heddle_drs_t* drs, int cpu);
/** What the caller may use now; CPUs beyond CPU_SETSIZE are left out. */
HEDDLE_DRS_API heddle_drs_ret_t heddle_drs_usable(heddle_drs_t* drs, cpu_set_t* cpus);

#ifdef __cplusplus
}
#endif

#endif
