// spin_barrier: the barriers of a program that brought its own: threads spin on a word and never yield.
//
// --rounds rounds of --round-us microseconds of work over --threads threads (0: as many as there are CPUs in
// the affinity mask, as such programs commonly do).
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

// Written by every thread on arrival; `generation` by the last one alone, with release, after it reset
// `arrived`, so that who sees the new generation with acquire also sees the count at zero.
static _Atomic uint64_t arrived;
static _Atomic uint64_t generation;

static struct Work work;
static uint64_t rounds = 1000;
static uint64_t round_us = 20;
static uint64_t threads = 0;

static void meet(void) {
    const uint64_t mine = atomic_load_explicit(&generation, memory_order_acquire);
    if (atomic_fetch_add_explicit(&arrived, 1, memory_order_acq_rel) + 1 == threads) {
        atomic_store_explicit(&arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&generation, mine + 1, memory_order_release);
        return;
    }
    while (atomic_load_explicit(&generation, memory_order_acquire) == mine) {
    }
}

static void* run_rounds(void* unused) {
    const uint64_t share = round_us * work.iterations_per_us / threads;
    for (uint64_t i = 0; i < rounds; ++i) {
        compute(share);
        meet();
    }
    return unused;
}

static uint64_t cpus_allowed(void) {
    cpu_set_t mask;
    return sched_getaffinity(0, sizeof(mask), &mask) == 0 ? (uint64_t)CPU_COUNT(&mask) : 1;
}

int main(int argc, char** argv) {
    const struct Option own[] = {{"--rounds", &rounds}, {"--round-us", &round_us}, {"--threads", &threads}};
    read_options(argc, argv, &work, own, 3);
    if (threads == 0) threads = cpus_allowed();

    pthread_t* const others = calloc(threads, sizeof(pthread_t));
    const uint64_t start = pass_gate(&work);
    for (uint64_t i = 1; i < threads; ++i) {
        if (others == NULL || pthread_create(&others[i], NULL, run_rounds, NULL) != 0) {
            fprintf(stderr, "spin_barrier: cannot start thread %d\n", (int)i);
            return 1;
        }
    }
    run_rounds(NULL);
    for (uint64_t i = 1; i < threads; ++i) pthread_join(others[i], NULL);
    report((int)threads, start);
    free(others);
    return 0;
}
