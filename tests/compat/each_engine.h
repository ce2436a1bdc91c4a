/* For C tests: runs something on each engine that is there, and looks whether memory grows when it is run
 * again and again. */
#ifndef HEDDLE_TESTS_COMPAT_EACH_ENGINE_H
#define HEDDLE_TESTS_COMPAT_EACH_ENGINE_H

#include <malloc.h>
#include <stdint.h>

#include "available_engines.h"
#include "refused.h"

static void (*with_runtime)(heddle_runtime_t* runtime);

static void make_runtime_for_it(const char* engine) {
    heddle_runtime_t* runtime = heddle_runtime_create(engine, NULL, 0);
    EXPECT(runtime != NULL);
    with_runtime(runtime);
    /* Refused where a handle is left. */
    EXPECT(heddle_runtime_destroy(runtime) == HEDDLE_TASK_SUCCESS);
}

static void on_each_engine(void (*test)(heddle_runtime_t* runtime)) {
    with_runtime = test;
    for_each_available_engine(make_runtime_for_it);
}

/* Bytes that malloc has given out; 0 where a sanitizer took its place, which looks for leaks itself. */
static inline size_t bytes_in_use(void) {
    const struct mallinfo2 memory = mallinfo2();
    return memory.uordblks + memory.hblkhd;
}

/* What engines keep for later grows in steps, by slabs of up to 350 kB, as it happens who runs what. A leak
 * grows in every round: that of the least growth is looked at. */
static inline void thousands_of_times(void (*once)(heddle_runtime_t* runtime), heddle_runtime_t* runtime) {
    enum { kRounds = 10, kTimes = 290, kBytesOfOne = 300 };
    for (int i = 0; i < 100; ++i) once(runtime);
    EXPECT(heddle_runtime_wait(runtime) == HEDDLE_TASK_SUCCESS);
    size_t before = bytes_in_use(), least = SIZE_MAX;
    for (int round = 0; round < kRounds; ++round) {
        for (int i = 0; i < kTimes; ++i) once(runtime);
        EXPECT(heddle_runtime_wait(runtime) == HEDDLE_TASK_SUCCESS);
        const size_t after = bytes_in_use(), growth = after > before ? after - before : 0;
        if (growth < least) least = growth;
        before = after;
    }
    EXPECT(least < kTimes * kBytesOfOne);
    if (least >= kTimes * kBytesOfOne) fprintf(stderr, "%zu bytes more in each round\n", least);
}

#endif
