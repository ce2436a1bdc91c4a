/* The interfaces of a task-based runtime by the names of seed 000: native offload (section 2.1.1), and
 * explicit pause and resume of tasks (section 2.2.3).
 *
 * `data` of the first three is NULL for the engine native, or an engine's name as a const char *. What is
 * initialised several times is shut down as often. A kernel is confined to its CPUs, and may block, signal
 * and spawn (heddle/offload.h, which also says how large its stack is). The functions return nothing: one
 * that could not do what it was asked for had no effect, sets errno (EINVAL, ENOENT where a library is
 * missing, EAGAIN, EIO), and heddle_task_error_message() tells more. Any thread may call, kernels and tasks
 * too. */
#ifndef HEDDLE_COMPAT_TBRS_H
#define HEDDLE_COMPAT_TBRS_H

#include <sched.h>

#include "../task.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Starts the engine on all CPUs that the process may use. */
HEDDLE_TASK_API void tbrs_initialize(void* data);
/** Waits for what was spawned. Not in a kernel of it. */
HEDDLE_TASK_API void tbrs_shutdown(void* data);
/** Returns before the kernel has ended. A NULL set stands for all CPUs. */
HEDDLE_TASK_API void tbrs_spawn_kernel_on_cpus(void* data, void (*function)(void*), void* args,
                                               cpu_set_t* cpu_set);

/** For one block and one signal, in any order; after both it is gone. */
typedef void* tbrs_block_cond_t;

HEDDLE_TASK_API void tbrs_create_block_condition(tbrs_block_cond_t* cond);
/** Returns when it has been signalled, before or meanwhile. `*cond` is NULL then. */
HEDDLE_TASK_API void tbrs_block_current_task(tbrs_block_cond_t* cond);
/** Returns at once; what is blocked will go on. */
HEDDLE_TASK_API void tbrs_signal_block_condition(tbrs_block_cond_t* cond);
/** The seed has this name too for the same (section 2.2.3). */
static inline void tbrs_unblock_task(tbrs_block_cond_t* cond) {
    tbrs_signal_block_condition(cond);
}

/** Not 0: it has done what it was for, and is not called any more. */
typedef int (*tbrs_polling_t)(void* data);

/** Threads of the engine that was initialised first call it while they have nothing else to do. */
HEDDLE_TASK_API void tbrs_register_polling_service(char const* service_name, tbrs_polling_t function,
                                                   void* data);
/** When it returns, the service is not being called with these data and never will be. */
HEDDLE_TASK_API void tbrs_unregister_polling_service(char const* service_name, tbrs_polling_t function,
                                                     void* data);

#ifdef __cplusplus
}
#endif

#endif
