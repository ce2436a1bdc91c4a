/* Tasks ordered by the data they name, for C: heddle/task.hpp, data.hpp, future.hpp and pause.hpp, which tell
 * more. Recordings are in heddle/recording.h, waits for a time or a descriptor in heddle/await.h.
 *
 *     static int fill(heddle_task_t* task) {
 *         double *x, with;
 *         heddle_unpack(task, 0, &x, sizeof x);
 *         heddle_unpack(task, 1, &with, sizeof with);
 *         ...
 *         return 0;
 *     }
 *     heddle_argument_t arguments[] = {heddle_out(x), heddle_value(&one, sizeof one)};
 *     heddle_insert(sequence, fill, arguments, 2, NULL);
 *
 * Any thread may call, tasks too; creating and destroying one thing is for one thread. A handle is a number
 * in a pointer's clothes: it must not be followed, and NULL, a destroyed one or one of another runtime is
 * refused. Tasks run on stacks of 64 KiB, or of HEDDLE_STACK_BYTES (a variable of the environment, a power of
 * two), where the engine can pause them: what needs more ends the process. What ends a call is told by its
 * result (a handle's is NULL), and by heddle_task_error() and heddle_task_error_message() of the calling
 * thread; nothing is thrown. Nothing outlives the process. */
#ifndef HEDDLE_TASK_H
#define HEDDLE_TASK_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#define HEDDLE_TASK_API __attribute__((visibility("default")))

/* Whatever number comes is looked at, and refused where it is none of them. */
#ifdef __cplusplus
#define HEDDLE_TASK_ANY : int
#else
#define HEDDLE_TASK_ANY
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_runtime heddle_runtime_t;
typedef struct heddle_sequence heddle_sequence_t;
typedef struct heddle_data heddle_data_t;
typedef struct heddle_tiles heddle_tiles_t;
typedef struct heddle_condition heddle_condition_t;
typedef struct heddle_future heddle_future_t;
/** A task, to its function and while that runs. */
typedef struct heddle_task heddle_task_t;

/** What a call came to; negative: it had no effect, but for waits, which have waited. */
typedef enum {
    HEDDLE_TASK_TIMEOUT = 1, /**< of heddle/await.h: the deadline came first */
    HEDDLE_TASK_SUCCESS = 0,
    HEDDLE_TASK_INVALID = -1,     /**< an argument that can never be right, a handle that is none */
    HEDDLE_TASK_UNAVAILABLE = -2, /**< a library is missing; the message says how to get it */
    HEDDLE_TASK_LIMIT = -3,       /**< no memory, or more than there can be */
    HEDDLE_TASK_SYSTEM = -4,      /**< the system refused something */
    HEDDLE_TASK_FAILED = -5       /**< of waits: a task failed */
} heddle_task_ret_t;

/** Of the calling thread's last call that failed. */
HEDDLE_TASK_API heddle_task_ret_t heddle_task_error(void);
/** What was wrong and what to do; "" before the first. Valid until the thread's next call that fails. */
HEDDLE_TASK_API const char* heddle_task_error_message(void);
/** After HEDDLE_TASK_FAILED: what the function of the task returned; 0 where it threw or did not run. */
HEDDLE_TASK_API int heddle_task_error_result(void);

/* Runtimes. */

typedef struct {
    const char* name;
    bool available;
    const char* version;
    const char* reason; /**< why it is not available, and how to get it */
} heddle_engine_t;

/** All engines that this build and machine know: how many, and the first `room` of them. The strings are
 * valid until the thread calls it again. */
HEDDLE_TASK_API size_t heddle_engines(heddle_engine_t* engines, size_t room);

/** `engine`: NULL for "native", else as heddle_engines() says; upper and lower case are the same. `cpus`:
 * NULL for all that the process may use. `workers`: tasks at once, at most; 0 for as many as CPUs. */
HEDDLE_TASK_API heddle_runtime_t* heddle_runtime_create(const char* engine, const cpu_set_t* cpus,
                                                        int workers);
/** Waits for its tasks. INVALID while sequences, data, futures or recordings of it are left, and in a task of
 * its own. */
HEDDLE_TASK_API heddle_task_ret_t heddle_runtime_destroy(heddle_runtime_t* runtime);
/** The engine's name, valid until the thread calls it again. */
HEDDLE_TASK_API const char* heddle_runtime_engine(heddle_runtime_t* runtime);
/** Those that tasks may run on. LIMIT where there are some beyond what a cpu_set_t has. */
HEDDLE_TASK_API heddle_task_ret_t heddle_runtime_cpus(heddle_runtime_t* runtime, cpu_set_t* cpus);
/** Until all tasks so far have ended. What failed is for heddle_sequence_wait() to tell. INVALID in a task of
 * this runtime. */
HEDDLE_TASK_API heddle_task_ret_t heddle_runtime_wait(heddle_runtime_t* runtime);
/** Waits for all tasks and goes on with another engine; data stay. Where it fails the old one goes on.
 * INVALID in a task. */
HEDDLE_TASK_API heddle_task_ret_t heddle_switch_engine(heddle_runtime_t* runtime, const char* engine);

/* Data: memory of the caller's, which must outlive them, or with NULL memory of their own, zeroed. */

typedef struct {
    void* elements;
    size_t rows, columns, leading; /**< (i, j) is element i + j * leading; a vector has one column */
    size_t element_bytes;
} heddle_view_t;

HEDDLE_TASK_API heddle_data_t* heddle_scalar_create(heddle_runtime_t* runtime, void* element,
                                                    size_t element_bytes);
HEDDLE_TASK_API heddle_data_t* heddle_vector_create(heddle_runtime_t* runtime, void* elements, size_t size,
                                                    size_t element_bytes);
/** Column-major. Of its own memory `leading` may be 0: as many as rows. */
HEDDLE_TASK_API heddle_data_t* heddle_matrix_create(heddle_runtime_t* runtime, void* elements, size_t rows,
                                                    size_t columns, size_t leading, size_t element_bytes);
/** Until no task that was inserted so far uses it. INVALID in a task that uses it itself. What failed is for
 * heddle_sequence_wait() to tell. */
HEDDLE_TASK_API heddle_task_ret_t heddle_data_wait(heddle_data_t* data);
/** Waits for the tasks that use it. */
HEDDLE_TASK_API heddle_task_ret_t heddle_data_view(heddle_data_t* data, heddle_view_t* view);
/** Waits for the tasks that use it. Not of a tile: that goes with its matrix. */
HEDDLE_TASK_API heddle_task_ret_t heddle_data_destroy(heddle_data_t* data);

/** A matrix cut into tiles of `tile` x `tile` elements, less at the lower and right edge. */
HEDDLE_TASK_API heddle_tiles_t* heddle_tiles_create(heddle_runtime_t* runtime, void* elements, size_t rows,
                                                    size_t columns, size_t leading, size_t tile,
                                                    size_t element_bytes);
/** The tile in row `i` and column `j` of tiles; NULL beyond the edge. It lives as long as the matrix. */
HEDDLE_TASK_API heddle_data_t* heddle_tile(heddle_tiles_t* tiles, size_t i, size_t j);
/** How many rows and columns of tiles there are. */
HEDDLE_TASK_API heddle_task_ret_t heddle_tiles_count(heddle_tiles_t* tiles, size_t* rows, size_t* columns);
/** Until no task that was inserted so far uses a tile. */
HEDDLE_TASK_API heddle_task_ret_t heddle_tiles_wait(heddle_tiles_t* tiles);
/** Waits for the tasks that use a tile. */
HEDDLE_TASK_API heddle_task_ret_t heddle_tiles_destroy(heddle_tiles_t* tiles);

/* Tasks. */

typedef enum HEDDLE_TASK_ANY {
    HEDDLE_IN,      /**< reads */
    HEDDLE_OUT,     /**< writes all of it, and does not look at what was there */
    HEDDLE_INOUT,   /**< reads and writes */
    HEDDLE_VALUE,   /**< a copy of `bytes` at `pointer`, taken now */
    HEDDLE_SCRATCH, /**< memory of `bytes` while the task runs, not initialised */
    HEDDLE_COMMUTE, /**< reads and writes, in any order with others that do, never two at once */
    HEDDLE_REDUX,   /**< adds to it, at once with others: each on a copy, which is combined later */
    HEDDLE_FUTURE,  /**< reads what the task of a future gives, and follows that task */
    HEDDLE_AFTER    /**< follows the task of a future */
} heddle_mode_t;

/** How copies come to be and go. Tasks that add together name the very same one, which must outlive the
 * runtime. combine(neutral, v) is v. */
typedef struct {
    /** Sets all elements of a copy to what adds nothing. */
    void (*fill)(const heddle_view_t* copy, const void* neutral);
    void (*combine)(const heddle_view_t* into, const heddle_view_t* copy);
    const void* neutral; /**< for `fill` */
} heddle_reduction_t;

typedef struct {
    heddle_mode_t mode;
    heddle_data_t* data; /**< of modes that read or write data */
    const void* pointer; /**< of VALUE; of REDUX a heddle_reduction_t; of FUTURE, AFTER a heddle_future_t */
    size_t bytes;        /**< of VALUE and SCRATCH */
} heddle_argument_t;

static inline heddle_argument_t heddle_in(heddle_data_t* data) {
    heddle_argument_t argument = {HEDDLE_IN, data, NULL, 0};
    return argument;
}
static inline heddle_argument_t heddle_out(heddle_data_t* data) {
    heddle_argument_t argument = {HEDDLE_OUT, data, NULL, 0};
    return argument;
}
static inline heddle_argument_t heddle_inout(heddle_data_t* data) {
    heddle_argument_t argument = {HEDDLE_INOUT, data, NULL, 0};
    return argument;
}
static inline heddle_argument_t heddle_value(const void* pointer, size_t bytes) {
    heddle_argument_t argument = {HEDDLE_VALUE, NULL, pointer, bytes};
    return argument;
}
static inline heddle_argument_t heddle_scratch(size_t bytes) {
    heddle_argument_t argument = {HEDDLE_SCRATCH, NULL, NULL, bytes};
    return argument;
}
/** The task may name the same data but once. */
static inline heddle_argument_t heddle_commute(heddle_data_t* data) {
    heddle_argument_t argument = {HEDDLE_COMMUTE, data, NULL, 0};
    return argument;
}
/** The same. */
static inline heddle_argument_t heddle_redux(heddle_data_t* data, const heddle_reduction_t* reduction) {
    heddle_argument_t argument = {HEDDLE_REDUX, data, reduction, 0};
    return argument;
}

/** Where the future's task failed this one is cancelled. The future may be destroyed before it runs. INVALID
 * to the insertion where the future is to give no bytes: heddle_after() is for that. */
static inline heddle_argument_t heddle_result_of(const heddle_future_t* future) {
    heddle_argument_t argument = {HEDDLE_FUTURE, NULL, future, 0};
    return argument;
}
static inline heddle_argument_t heddle_after(const heddle_future_t* future) {
    heddle_argument_t argument = {HEDDLE_AFTER, NULL, future, 0};
    return argument;
}

/** A task's function. 0: done. Anything else: it failed, what it writes is not to be read, and tasks that
 * would read it do not run. */
typedef int (*heddle_function_t)(heddle_task_t* task);

typedef enum HEDDLE_TASK_ANY {
    HEDDLE_NEAR_NOTHING,
    HEDDLE_NEAR_CPU,
    HEDDLE_NEAR_NUMA_NODE,
    HEDDLE_NEAR_DATA
} heddle_near_kind_t;

/** Where a task shall run if it may choose: on CPUs of its runtime's that are near to something. */
typedef struct {
    heddle_near_kind_t kind;
    int number;          /**< of a CPU, or of a NUMA node as the machine counts them from 0 */
    heddle_data_t* data; /**< the NUMA node where they lie when the task is inserted */
} heddle_near_t;

static inline heddle_near_t heddle_near_cpu(int cpu) {
    heddle_near_t near_it = {HEDDLE_NEAR_CPU, cpu, NULL};
    return near_it;
}
static inline heddle_near_t heddle_near_numa_node(int node) {
    heddle_near_t near_it = {HEDDLE_NEAR_NUMA_NODE, node, NULL};
    return near_it;
}
static inline heddle_near_t heddle_near_data(heddle_data_t* data) {
    heddle_near_t near_it = {HEDDLE_NEAR_DATA, 0, data};
    return near_it;
}

/** All zero: nothing is said. */
typedef struct {
    int priority;          /**< higher ones first, among those that could run */
    const char* name;      /**< for traces and errors; must outlive the runtime (a literal), or NULL */
    const cpu_set_t* cpus; /**< the task runs on these alone, which are the runtime's; NULL: on any */
    heddle_near_t near_to; /**< INVALID where the machine has no such CPU or node */
} heddle_task_options_t;

HEDDLE_TASK_API heddle_sequence_t* heddle_sequence_create(heddle_runtime_t* runtime);
/** A task that calls `function`. The arguments are copied; `options` may be NULL. May run other tasks
 * meanwhile, where many wait. INVALID for data of another runtime, CPUs that are not the runtime's, or an
 * argument that is none; LIMIT where memory is short: nothing is inserted then. */
HEDDLE_TASK_API heddle_task_ret_t heddle_insert(heddle_sequence_t* sequence, heddle_function_t function,
                                                const heddle_argument_t* arguments, size_t count,
                                                const heddle_task_options_t* options);
/** The same with a future of what the function gives by heddle_give(): `result_bytes`, or 0 where it only
 * ends. NULL where heddle_insert() would refuse. */
HEDDLE_TASK_API heddle_future_t* heddle_async(heddle_sequence_t* sequence, heddle_function_t function,
                                              const heddle_argument_t* arguments, size_t count,
                                              size_t result_bytes, const heddle_task_options_t* options);
/** Until all of its tasks so far have ended. FAILED: the first that failed, told once. INVALID in a task of
 * this very sequence, or of one that it waits for by tasks that wait in it: that would never end. */
HEDDLE_TASK_API heddle_task_ret_t heddle_sequence_wait(heddle_sequence_t* sequence);
/** Waits, and tells as that does; then it is gone all the same, except where the answer is INVALID. */
HEDDLE_TASK_API heddle_task_ret_t heddle_sequence_destroy(heddle_sequence_t* sequence);

/* Futures. Any thread may wait for one, and many at once; a task that does is paused, as by
 * heddle_condition_block(). */

/** Whether heddle_future_get() would return at once. */
HEDDLE_TASK_API heddle_task_ret_t heddle_future_ready(const heddle_future_t* future, bool* ready);
/** Until its task has ended, whatever came of it. INVALID in that very task, and in one that it waits for,
 * itself or through others: it would never end. LIMIT in a task where there is no memory to pause it. */
HEDDLE_TASK_API heddle_task_ret_t heddle_future_wait(const heddle_future_t* future);
/** Waits, and copies the result, `bytes` of which must be as many as it has. FAILED: its task failed, or was
 * cancelled, which the wait of its sequence tells, too. May be called again. */
HEDDLE_TASK_API heddle_task_ret_t heddle_future_get(const heddle_future_t* future, void* to, size_t bytes);
/** Does not wait: what it was for goes on. Nobody may be waiting for it. */
HEDDLE_TASK_API heddle_task_ret_t heddle_future_destroy(heddle_future_t* future);

/* In a task's function: its arguments by their place, from 0. What is asked wrongly is refused, and the task
 * fails, whatever it returns. */

HEDDLE_TASK_API size_t heddle_argument_count(const heddle_task_t* task);
/** Of VALUE and FUTURE: copies its bytes, which must be as many. Of others: the address of the elements or
 * the memory, `to` being a pointer and `bytes` its size. */
HEDDLE_TASK_API heddle_task_ret_t heddle_unpack(heddle_task_t* task, size_t index, void* to, size_t bytes);
/** The elements of data and their shape; of VALUE, SCRATCH and FUTURE one column of bytes; that of FUTURE is
 * shared by all who read it. Of AFTER there is nothing. */
HEDDLE_TASK_API heddle_task_ret_t heddle_unpack_view(heddle_task_t* task, size_t index, heddle_view_t* view);
/** What the task's future gets: a copy of `bytes` at `result`, which must be as many as heddle_async() was
 * told. The last one counts. A task that returns 0 and has given nothing of what it was to give failed. */
HEDDLE_TASK_API heddle_task_ret_t heddle_give(heddle_task_t* task, const void* result, size_t bytes);
/** Says why it failed: `return heddle_task_fail(task, 7, "not positive definite");`. Returns `result`. */
HEDDLE_TASK_API int heddle_task_fail(heddle_task_t* task, int result, const char* message);

/* Waiting in a task without keeping its worker (heddle/pause.hpp). */

/** For one block and one signal, in any order; after both it may be used again. */
HEDDLE_TASK_API heddle_condition_t* heddle_condition_create(void);
/** Nobody may be blocked on it. */
HEDDLE_TASK_API heddle_task_ret_t heddle_condition_destroy(heddle_condition_t* condition);
/** Returns when it has been signalled, before or meanwhile. INVALID where another task is blocked on it,
 * LIMIT where there is no memory for another stack. */
HEDDLE_TASK_API heddle_task_ret_t heddle_condition_block(heddle_condition_t* condition);
/** Returns at once; what is blocked will go on. INVALID where it was signalled already and nobody has blocked
 * since. */
HEDDLE_TASK_API heddle_task_ret_t heddle_condition_signal(heddle_condition_t* condition);

/** Called again and again by workers that have nothing else to do, until it returns true. Must not block. */
typedef bool (*heddle_polling_service_t)(void* data);
/** Refused for a pair of service and data that is registered. `name` is for people. */
HEDDLE_TASK_API heddle_task_ret_t heddle_register_polling_service(heddle_runtime_t* runtime, const char* name,
                                                                  heddle_polling_service_t service,
                                                                  void* data);
/** When it returns, the service is not being called with these data and never will be. */
HEDDLE_TASK_API heddle_task_ret_t heddle_unregister_polling_service(heddle_runtime_t* runtime,
                                                                    heddle_polling_service_t service,
                                                                    void* data);

#ifdef __cplusplus
}
#endif

#endif
