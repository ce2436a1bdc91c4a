/* Threads as they are created, and the demand that each means.
 *
 * A thread of the program's own counts from its first to its last instruction. Those of OpenMP count by their
 * regions (region.h); those of oneTBB count here, and sleep in calls that blocking.c sees.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>

#include "affinity.h"
#include "base/short_turns.h"
#include "callers.h"
#include "embedded.h"
#include "export.h"
#include "link.h"
#include "object.h"
#include "process.h"
#include "real.h"
#include "tbb.h"
#include "waiting.h"

/* Set in threads that count in the demand while they do not wait: not in ours, and not in those that were
 * there before us. */
static __thread bool counted;
/* Set in threads of ours; how many there are. */
static __thread bool is_ours;
static _Atomic unsigned ours;
/* This thread is taken out of the demand. A thread that is cancelled in a wait, or jumps out of it, is put
 * right at its end or by its next wait. */
static __thread bool waiting;
/* A thread of the program's own, not one of a runtime that follows the grant. */
static __thread bool own;

void waiting_is_main(void) {
    own = counted = true;
}

/* Of those that a runtime began for us. */
static __thread bool is_lent;

void waiting_begins_as_ours(void) {
    if (is_ours) return;
    is_ours = is_lent = true;
    counted = false;
    atomic_fetch_add(&ours, 1);
}

void waiting_ends_as_ours(void) {
    if (!is_lent) return;
    is_lent = false; /* it is about to end, and never counted */
    atomic_fetch_sub(&ours, 1);
}

/* Of the program's threads, as the one had them that began the first of ours, the helper. */
static sigset_t programs_signals;
static _Atomic bool has_programs_signals;

unsigned waiting_ours(void) {
    return atomic_load(&ours);
}

static void change(int by, bool soon) {
    if (own) link_change_own(by);
    link_change_demand(by, soon);
}

bool waiting_begin(bool is_long) {
    if (!link_managed() || !counted) return false;
    if (!waiting) change(-1, is_long);
    waiting = true;
    return true;
}

void waiting_end(bool began) {
    if (!began || !waiting) return;
    const int result = errno;
    waiting = false;
    change(+1, false);
    errno = result;
}

void waiting_forget_in_child(void) {
    waiting = false;
    own = counted = true;
    atomic_store(&ours, 0);
    atomic_store(&has_programs_signals, false);
}

enum { kLongestRestNs = 100000000 };

struct start {
    void* (*run)(void*);
    int (*run_c11)(void*); /* in its place, where it is not null */
    void* argument;
    bool own;
    uint32_t epoch; /* of the grant that its maker is bound to; 0: of none */
    bool is_bound;  /* by the program, to mask */
    cpu_set_t mask;
    bool is_made_by_us; /* in a thread of ours, as by a runtime whose limit it has raised */
};

/* A thread of the program's that one of ours has made is as the others. */
static void begin_as_the_programs(void) {
    pthread_sigmask(SIG_SETMASK, &programs_signals, NULL);
    heddle_prefer_usual_turns();
}

/* What the thread is to do. Its mask is that of its maker, perhaps from before the grant changed. */
static struct start begin(void* data) {
    const struct start start = *(struct start*)data;
    free(data);
    if (start.is_made_by_us) begin_as_the_programs();
    affinity_thread_begins(start.is_bound ? &start.mask : NULL, start.epoch);
    return start;
}

static void* run_of(const struct start* start) {
    return start->run_c11 == NULL ? start->run(start->argument)
                                  : (void*)(intptr_t)start->run_c11(start->argument);
}

static void thread_ended(void* unused) {
    (void)unused;
    affinity_thread_ends();
    if (!waiting && link_managed()) change(-1, false);
}

static void* run_counted(void* data) {
    const struct start start = begin(data);
    own = start.own;
    counted = true;
    void* result = NULL;
    pthread_cleanup_push(thread_ended, NULL);
    result = run_of(&start);
    pthread_cleanup_pop(1);
    return result;
}

static int run_counted_c11(void* data) {
    return (int)(intptr_t)run_counted(data);
}

static void region_thread_ended(void* unused) {
    (void)unused;
    affinity_thread_ends();
}

/* Of OpenMP: its regions announce it. */
static void* run_in_regions(void* data) {
    const struct start start = begin(data);
    counted = true;
    void* result = NULL;
    pthread_cleanup_push(region_thread_ended, NULL);
    result = run_of(&start);
    pthread_cleanup_pop(1);
    return result;
}

static void* run_uncounted(void* data) {
    const struct start start = *(struct start*)data;
    free(data);
    is_ours = true;
    void* const result = start.run(start.argument);
    atomic_fetch_sub(&ours, 1);
    return result;
}

static struct start* make_start(const struct start* from) {
    struct start* start = malloc(sizeof *start);
    if (start != NULL) *start = *from;
    return start;
}

static void announce(const struct start* start, int change) {
    if (start->own) link_change_own(change);
    link_change_demand(change, false);
}

/* The thread is to have its own mask from the attributes, or from its maker. */
static void find_mask(struct start* start, const pthread_attr_t* attributes) {
    cpu_set_t all;
    memset(&all, 0xff, sizeof all); /* what attributes without a mask say */
    start->is_bound = attributes != NULL &&
                      pthread_attr_getaffinity_np(attributes, sizeof start->mask, &start->mask) == 0 &&
                      !CPU_EQUAL(&start->mask, &all);
    if (!start->is_bound && !start->is_made_by_us) start->is_bound = affinity_find_own(&start->mask);
    /* The helper thread may bind it before that is noted. */
    if (start->is_bound) start->epoch = 0;
}

static bool begins_with(const char* name, const char* with) {
    return strncmp(name, with, strlen(with)) == 0;
}

HEDDLE_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                                 void* argument) {
    REAL(pthread_create)
    process_join();
    if (!link_managed()) return real(thread, attributes, run, argument);
    const void* caller = __builtin_return_address(0);
    const char* by = object_name_at(caller);
    const bool by_libomp = begins_with(by, "libomp") || begins_with(by, "libiomp") ||
                           callers_are_libomp_under_another_name(caller);
    const bool by_tbb = begins_with(by, "libtbb");
    const bool in_regions = by_libomp || callers_are_libgomp(caller);
    if (by_libomp)
        callers_note_libomp(caller);
    else if (by_tbb)
        tbb_noticed();
    else if (!in_regions)
        embedded_noticed(caller);
    /* Not the teams that we park. */
    const bool is_made_by_us = is_ours && !in_regions;
    struct start wanted = {.run = run,
                           .argument = argument,
                           .own = !by_tbb && !in_regions,
                           .epoch = is_made_by_us ? 0 : affinity_epoch(),
                           .is_made_by_us = is_made_by_us};
    find_mask(&wanted, attributes);
    struct start* start = make_start(&wanted);
    if (start == NULL) return real(thread, attributes, run, argument);
    if (!in_regions) announce(&wanted, +1);
    int failure = real(thread, attributes, in_regions ? run_in_regions : run_counted, start);
    /* libgomp ends the program that it cannot make a thread for: a team that we park can wait for one. */
    for (struct timespec rest = {.tv_nsec = 1000000}; failure == EAGAIN && is_ours && in_regions;) {
        (void)nanosleep(&rest, NULL);
        if (rest.tv_nsec < kLongestRestNs) rest.tv_nsec *= 2;
        failure = real(thread, attributes, run_in_regions, start);
    }
    if (failure == 0) return 0;
    if (!in_regions) announce(&wanted, -1);
    free(start);
    return failure;
}

HEDDLE_EXPORT int thrd_create(thrd_t* thread, thrd_start_t run, void* argument) {
    REAL(thrd_create)
    process_join();
    struct start wanted = {.run_c11 = run, .argument = argument, .own = true, .epoch = affinity_epoch()};
    find_mask(&wanted, NULL);
    struct start* start = link_managed() ? make_start(&wanted) : NULL;
    if (start == NULL) return real(thread, run, argument);
    announce(&wanted, +1);
    const int failure = real(thread, run_counted_c11, start);
    if (failure == thrd_success) return failure;
    announce(&wanted, -1);
    free(start);
    return failure;
}

/* The C library's, for who has stacks of his own to give. */
size_t __pthread_get_minstack(const pthread_attr_t* attributes);

/* What a thread of ours needs beside what libraries have for each thread: a program may have locked its
 * memory, or have little of it. Left as it is where the C library does not say how much those have. */
static void want_small_stack(pthread_attr_t* attributes) {
    REAL(__pthread_get_minstack)
    enum { kOurs = 256 * 1024 };
    if (real != NULL) (void)pthread_attr_setstacksize(attributes, real(attributes) + kOurs);
}

bool waiting_start_uncounted(void* (*run)(void*), void* argument) {
    REAL(pthread_create)
    const struct start wanted = {.run = run, .argument = argument};
    struct start* start = make_start(&wanted);
    if (start == NULL) return false;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    want_small_stack(&attributes);
    /* Signals belong to the program's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!atomic_exchange(&has_programs_signals, true)) programs_signals = before;
    pthread_t thread;
    atomic_fetch_add(&ours, 1);
    const int failure = real(&thread, &attributes, run_uncounted, start);
    if (failure != 0) atomic_fetch_sub(&ours, 1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failure != 0) free(start);
    return failure == 0;
}
