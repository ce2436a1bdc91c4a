/* The dynamic resource sharing interface of seed 000 section 2.2.1 by its own names.
 *
 * Its function names (lend, acquire, ...) are common words, so libheddle does not export them: they are
 * inline here, each on top of one heddle_drs_ function of heddle/drs.h, which tells what it does. What the
 * seed leaves open is settled here: drs_attach and drs_detach, the type of callbacks, and DRS_NOUPDT, which
 * says that there was nothing to do. */
#ifndef HEDDLE_COMPAT_DRS_H
#define HEDDLE_COMPAT_DRS_H

#include <sched.h>

#include "../drs.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef heddle_drs_t drs_desc_t;

typedef enum {
    DRS_SUCCESS = HEDDLE_DRS_SUCCESS,
    DRS_NOTED = HEDDLE_DRS_NOTED,
    DRS_NOUPDT = HEDDLE_DRS_NOUPDT,
    DRS_DISBLD = HEDDLE_DRS_DISBLD,
    DRS_PERM = HEDDLE_DRS_PERM,
    DRS_REQST = HEDDLE_DRS_REQST
} drs_ret_t;

/* The seed calls this type drs_cbs_t in the functions and drs_callbacks_t where it lists the values. */
typedef enum {
    drs_callback_set_num_threads = HEDDLE_DRS_SET_NUM_THREADS,
    drs_callback_set_active_mask = HEDDLE_DRS_SET_ACTIVE_MASK,
    drs_callback_add_active_mask = HEDDLE_DRS_ADD_ACTIVE_MASK,
    drs_callback_enable_cpu = HEDDLE_DRS_ENABLE_CPU,
    drs_callback_disable_cpu = HEDDLE_DRS_DISABLE_CPU
} drs_cbs_t;
typedef drs_cbs_t drs_callbacks_t;

typedef void (*drs_cb_t)(void);

static inline drs_desc_t* drs_attach(const char* name, const cpu_set_t* owned) {
    return heddle_drs_attach(name, owned);
}
static inline void drs_detach(drs_desc_t* spd) {
    (void)heddle_drs_detach(spd);
}

static inline drs_ret_t set_drs_enable(drs_desc_t* spd) {
    return (drs_ret_t)heddle_drs_enable(spd);
}
static inline drs_ret_t set_drs_disable(drs_desc_t* spd) {
    return (drs_ret_t)heddle_drs_disable(spd);
}
static inline drs_ret_t set_max_parallelism(drs_desc_t* spd, int max) {
    return (drs_ret_t)heddle_drs_set_max_parallelism(spd, max);
}
static inline drs_ret_t callback_set(drs_desc_t* spd, drs_cbs_t which, drs_cb_t callback) {
    return (drs_ret_t)heddle_drs_callback_set(spd, (int)which, callback);
}
static inline drs_ret_t callback_get(drs_desc_t* spd, drs_cbs_t which, drs_cb_t* callback) {
    return (drs_ret_t)heddle_drs_callback_get(spd, (int)which, callback);
}

static inline drs_ret_t lend(drs_desc_t* spd) {
    return (drs_ret_t)heddle_drs_lend(spd);
}
static inline drs_ret_t lend_cpu(drs_desc_t* spd, int cpuid) {
    return (drs_ret_t)heddle_drs_lend_cpu(spd, cpuid);
}
static inline drs_ret_t lend_cpus(drs_desc_t* spd, int ncpus) {
    return (drs_ret_t)heddle_drs_lend_cpus(spd, ncpus);
}
static inline drs_ret_t lend_cpu_mask(drs_desc_t* spd, const cpu_set_t* mask) {
    return (drs_ret_t)heddle_drs_lend_cpu_mask(spd, mask);
}

static inline drs_ret_t reclaim(drs_desc_t* spd) {
    return (drs_ret_t)heddle_drs_reclaim(spd);
}
static inline drs_ret_t reclaim_cpu(drs_desc_t* spd, int cpuid) {
    return (drs_ret_t)heddle_drs_reclaim_cpu(spd, cpuid);
}
static inline drs_ret_t reclaim_cpus(drs_desc_t* spd, int ncpus) {
    return (drs_ret_t)heddle_drs_reclaim_cpus(spd, ncpus);
}
static inline drs_ret_t reclaim_cpu_mask(drs_desc_t* spd, const cpu_set_t* mask) {
    return (drs_ret_t)heddle_drs_reclaim_cpu_mask(spd, mask);
}

static inline drs_ret_t acquire(drs_desc_t* spd) {
    return (drs_ret_t)heddle_drs_acquire(spd);
}
static inline drs_ret_t acquire_cpu(drs_desc_t* spd, int cpuid) {
    return (drs_ret_t)heddle_drs_acquire_cpu(spd, cpuid);
}
static inline drs_ret_t acquire_cpus(drs_desc_t* spd, int ncpus) {
    return (drs_ret_t)heddle_drs_acquire_cpus(spd, ncpus);
}
static inline drs_ret_t acquire_cpu_mask(drs_desc_t* spd, const cpu_set_t* mask) {
    return (drs_ret_t)heddle_drs_acquire_cpu_mask(spd, mask);
}

static inline drs_ret_t return_all(drs_desc_t* spd) {
    return (drs_ret_t)heddle_drs_return_all(spd);
}
static inline drs_ret_t return_cpu(drs_desc_t* spd, int cpuid) {
    return (drs_ret_t)heddle_drs_return_cpu(spd, cpuid);
}

#ifdef __cplusplus
}
#endif

#endif
