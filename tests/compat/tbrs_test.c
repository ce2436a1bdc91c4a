/* Seed 000's own names for native offload and for pausing, as its sections 2.1.1, 2.2.3 and 3.2 use them: a
 * library whose kernels run on CPUs of their own, called synchronously and asynchronously, from a program and
 * from kernels of another engine. */
#define _GNU_SOURCE
#include "tbrs.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "expect.h"

#define REFUSED(call, number, words) (errno = 0, (call), EXPECT(errno == (number)), EXPECT_SAID(words))

/* The library of section 3.2, with the native interface in the place of OpenCL's. */
typedef struct {
    void* engine;
    cpu_set_t cpus;
} libMATH_info;

typedef struct {
    int N;
    const float* vector;
    float res;
    tbrs_block_cond_t ended;
} libMATH_async_t;

static void libMATH_compute_kernel(void* a) {
    libMATH_async_t* args = a;
    args->res = 0;
    for (int i = 0; i < args->N; i++) args->res += args->vector[i];
    tbrs_signal_block_condition(&args->ended);
}

static libMATH_async_t* libMATH_compute_async(libMATH_info* info, int N, const float* vector) {
    libMATH_async_t* h = malloc(sizeof(*h));
    h->N = N;
    h->vector = vector;
    tbrs_create_block_condition(&h->ended);
    tbrs_spawn_kernel_on_cpus(info->engine, libMATH_compute_kernel, h, &info->cpus);
    return h;
}

static float libMATH_async_wait(libMATH_async_t* h) {
    tbrs_block_current_task(&h->ended);
    EXPECT(h->ended == NULL);
    const float res = h->res;
    free(h);
    return res;
}

static float libMATH_compute(libMATH_info* info, int N, const float* vector) {
    return libMATH_async_wait(libMATH_compute_async(info, N, vector));
}

static float numbers[1000];
static atomic_int right;

typedef struct {
    libMATH_info* info;
} caller_t;

static void calls_the_library(void* a) {
    const caller_t* caller = a;
    libMATH_async_t* first = libMATH_compute_async(caller->info, 1000, numbers);
    if (libMATH_compute(caller->info, 10, numbers) == 45 && libMATH_async_wait(first) == 499500)
        atomic_fetch_add(&right, 1);
}

static void a_parallel_program_calls_a_parallel_library(void* program, void* library) {
    libMATH_info info = {library, {{0}}};
    CPU_SET(0, &info.cpus);
    tbrs_initialize(library);
    EXPECT(libMATH_compute(&info, 1000, numbers) == 499500);
    tbrs_initialize(program);
    caller_t caller = {&info};
    atomic_store(&right, 0);
    for (int i = 0; i < 50; ++i) tbrs_spawn_kernel_on_cpus(program, calls_the_library, &caller, NULL);
    tbrs_shutdown(program);
    if (program != library) tbrs_shutdown(library);
    EXPECT(atomic_load(&right) == 50);
    if (program == library) tbrs_shutdown(library);
}

typedef struct {
    atomic_int calls;
    tbrs_block_cond_t enough;
} counter_t;

static int counts_to_five(void* data) {
    counter_t* counter = data;
    if (atomic_fetch_add(&counter->calls, 1) + 1 < 5) return 0;
    tbrs_signal_block_condition(&counter->enough);
    return 256;
}

static int never_done(void* data) {
    atomic_fetch_add((atomic_int*)data, 1);
    return 0;
}

/* What a library does that polls while something is pending: its last call may be under way. */
static int registers_itself(void* data) {
    counter_t* counter = data;
    if (atomic_fetch_add(&counter->calls, 1) == 0) {
        tbrs_register_polling_service("again", registers_itself, counter);
        REFUSED(tbrs_register_polling_service("again", registers_itself, counter), EINVAL,
                "registered with these data");
    } else {
        tbrs_signal_block_condition(&counter->enough);
    }
    return 1;
}

static void services_are_polled(void* engine) {
    REFUSED(tbrs_register_polling_service("early", never_done, NULL), EINVAL, "tbrs_initialize");
    tbrs_initialize(engine);
    counter_t counters[2];
    for (int i = 0; i < 2; ++i) {
        atomic_init(&counters[i].calls, 0);
        tbrs_create_block_condition(&counters[i].enough);
        tbrs_register_polling_service("five", counts_to_five, &counters[i]);
    }
    for (int i = 0; i < 2; ++i) tbrs_block_current_task(&counters[i].enough);
    for (int i = 0; i < 2; ++i) EXPECT(atomic_load(&counters[i].calls) == 5);
    counter_t again;
    atomic_init(&again.calls, 0);
    tbrs_create_block_condition(&again.enough);
    tbrs_register_polling_service("again", registers_itself, &again);
    tbrs_block_current_task(&again.enough);
    EXPECT(atomic_load(&again.calls) == 2);
    atomic_int calls;
    atomic_init(&calls, 0);
    tbrs_register_polling_service("never", never_done, &calls);
    while (atomic_load(&calls) < 3) {
    }
    tbrs_unregister_polling_service("never", never_done, &calls);
    const int last = atomic_load(&calls);
    REFUSED(tbrs_unregister_polling_service("never", never_done, &calls), EINVAL, "not registered");
    /* One that is left goes with the engine. */
    tbrs_register_polling_service("left", never_done, &counters[0].calls);
    tbrs_shutdown(engine);
    EXPECT(atomic_load(&calls) == last);
}

static void nothing(void* a) {
    (void)a;
}

typedef struct {
    void* engine;
    int left;  /* how many are to follow */
    int waits; /* for a service of its own */
} chain_t;
static atomic_int links;

static int signals_at_once(void* data) {
    tbrs_signal_block_condition(data);
    return 1;
}

static void spawns_another(void* a) {
    chain_t* chain = a;
    const struct timespec soon = {0, 5000000};
    nanosleep(&soon, NULL);
    if (chain->waits) {
        tbrs_block_cond_t told;
        tbrs_create_block_condition(&told);
        tbrs_block_cond_t waited_for = told;
        tbrs_register_polling_service("tells", signals_at_once, &waited_for);
        tbrs_block_current_task(&told);
    }
    atomic_fetch_add(&links, 1);
    if (chain->left-- > 0) tbrs_spawn_kernel_on_cpus(chain->engine, spawns_another, chain, NULL);
}

/* Whoever shuts down waits for them all, and has their services polled meanwhile. */
static void kernels_spawn_kernels_while_the_engine_is_shut_down(void* engine) {
    for (int waits = 0; waits < 2; ++waits) {
        tbrs_initialize(engine);
        atomic_store(&links, 0);
        chain_t chain = {engine, 3, waits};
        tbrs_spawn_kernel_on_cpus(engine, spawns_another, &chain, NULL);
        tbrs_shutdown(engine);
        EXPECT(atomic_load(&links) == 4);
    }
}

static void what_cannot_be_is_refused(void) {
    cpu_set_t none, far;
    memset(&none, 0, sizeof none);
    memset(&far, 0, sizeof far);
    CPU_SET(1000, &far);
    REFUSED(tbrs_initialize("nanos6"), EINVAL, "heddle knows native");
    REFUSED(tbrs_spawn_kernel_on_cpus(NULL, nothing, NULL, NULL), EINVAL, "not initialised");
    REFUSED(tbrs_shutdown(NULL), EINVAL, "not initialised");
    tbrs_initialize(NULL);
    REFUSED(tbrs_spawn_kernel_on_cpus(NULL, nothing, NULL, &none), EINVAL, "empty set");
    REFUSED(tbrs_spawn_kernel_on_cpus(NULL, nothing, NULL, &far), EINVAL, "1000");
    REFUSED(tbrs_spawn_kernel_on_cpus(NULL, NULL, NULL, NULL), EINVAL, "function");
    tbrs_shutdown(NULL);
    tbrs_block_cond_t cond;
    tbrs_create_block_condition(&cond);
    tbrs_unblock_task(&cond);
    REFUSED(tbrs_signal_block_condition(&cond), EINVAL, "signalled already");
    tbrs_block_current_task(&cond);
    REFUSED(tbrs_block_current_task(&cond), EINVAL, "condition");
    REFUSED(tbrs_block_current_task(NULL), EINVAL, "NULL");
    REFUSED(tbrs_create_block_condition(NULL), EINVAL, "place");
}

int main(void) {
    for (int i = 0; i < 1000; ++i) numbers[i] = (float)i;
    void* engines[] = {NULL, "openmp", "openmp-libomp", "TBB"};
    for (int i = 0; i < 4; ++i) {
        errno = EDOM;
        tbrs_initialize(engines[i]);
        if (errno == ENOENT && engines[i] != NULL) {
            printf("skipped: %s\n", heddle_task_error_message());
            continue;
        }
        EXPECT(errno == EDOM); /* a success says nothing */
        tbrs_shutdown(engines[i]);
        EXPECT(errno == EDOM);
        a_parallel_program_calls_a_parallel_library(NULL, engines[i]);
        a_parallel_program_calls_a_parallel_library(engines[i], engines[i]);
        services_are_polled(engines[i]);
        kernels_spawn_kernels_while_the_engine_is_shut_down(engines[i]);
    }
    what_cannot_be_is_refused();
    return failures != 0;
}
