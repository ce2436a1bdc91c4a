/* Kernels of one engine on sets of CPUs, for C: heddle/offload.hpp, which tells more.
 *
 *     heddle_offload_t* openmp = heddle_offload_start("openmp", NULL);
 *     heddle_kernel_t* kernel = heddle_kernel_spawn(openmp, function, argument, &cpus);
 *     ...
 *     heddle_kernel_wait(kernel);
 *     heddle_offload_stop(openmp);
 *
 * A kernel of "native" or "starpu" has the stack of a task: 64 KiB, or HEDDLE_STACK_BYTES of the environment.
 *
 * Any thread may call, kernels and tasks too; starting and stopping one offload is for one thread. Handles,
 * results and errors are as in heddle/task.h. */
#ifndef HEDDLE_OFFLOAD_H
#define HEDDLE_OFFLOAD_H

#include "heddle/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_offload heddle_offload_t;
/** A kernel that was spawned, until it has been waited for. */
typedef struct heddle_kernel heddle_kernel_t;

/** A kernel: called once with what was given for it. Must not let a C++ exception out. */
typedef void (*heddle_kernel_function_t)(void* argument);

/** `engine`: NULL for "native", else as heddle_engines() says. `cpus`: NULL for all that the process may use.
 */
HEDDLE_TASK_API heddle_offload_t* heddle_offload_start(const char* engine, const cpu_set_t* cpus);
/** Waits for its kernels. INVALID in one of them. Handles of its kernels go on being good. */
HEDDLE_TASK_API heddle_task_ret_t heddle_offload_stop(heddle_offload_t* offload);
/** Other CPUs from now on; kernels under way leave those that are gone. INVALID for an empty set, or CPUs
 * that the process may not use. */
HEDDLE_TASK_API heddle_task_ret_t heddle_offload_set_cpus(heddle_offload_t* offload, const cpu_set_t* cpus);
/** Until all kernels that were spawned so far have ended. */
HEDDLE_TASK_API heddle_task_ret_t heddle_offload_wait(heddle_offload_t* offload);

/** Does not wait. `cpus`: NULL for all of the offload's, else some of them. `ended`, unless NULL, is called
 * with `data` when the kernel has ended, on its thread. */
HEDDLE_TASK_API heddle_task_ret_t heddle_offload_spawn(heddle_offload_t* offload,
                                                       heddle_kernel_function_t function, void* argument,
                                                       const cpu_set_t* cpus, heddle_kernel_function_t ended,
                                                       void* data);
/** The same with a handle, which heddle_kernel_wait() ends. */
HEDDLE_TASK_API heddle_kernel_t* heddle_kernel_spawn(heddle_offload_t* offload,
                                                     heddle_kernel_function_t function, void* argument,
                                                     const cpu_set_t* cpus);
/** Until it has ended; then the handle is gone. Pauses the task or kernel that calls it. INVALID in itself.
 */
HEDDLE_TASK_API heddle_task_ret_t heddle_kernel_wait(heddle_kernel_t* kernel);
/** 1: it has ended. 0: not yet. Negative: no kernel. */
HEDDLE_TASK_API int heddle_kernel_done(heddle_kernel_t* kernel);
/** The CPUs that the calling kernel has now, and how many; 0 outside of kernels. `cpus` may be NULL. Regions
 * of OpenMP that the thread opens next have as many threads. */
HEDDLE_TASK_API int heddle_kernel_cpus(cpu_set_t* cpus);

#ifdef __cplusplus
}
#endif

#endif
