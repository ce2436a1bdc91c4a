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
#include <stdlib.h>
#include <string.h>

#include "callers.h"
#include "embedded.h"
#include "export.h"
#include "link.h"
#include "object.h"
#include "process.h"
#include "real.h"
#include "tbb.h"
#include "waiting.h"

/* Set in threads of ours; how many there are. */
static __thread bool uncounted;
static _Atomic unsigned ours;
/* This thread is taken out of the demand. A thread that is cancelled in a wait, or jumps out of it, is put
 * right at its end or by its next wait. */
static __thread bool waiting;
/* A thread of the program's own, not one of a runtime that follows the grant. */
static __thread bool own;

void waiting_is_main(void) {
    own = true;
}

/* Of those that a runtime began for us. */
static __thread bool is_lent;

void waiting_begins_as_ours(void) {
    if (uncounted) return;
    uncounted = is_lent = true;
    atomic_fetch_add(&ours, 1);
}

void waiting_ends_as_ours(void) {
    if (!is_lent) return;
    is_lent = false; /* it is about to end, and never counted */
    atomic_fetch_sub(&ours, 1);
}

unsigned waiting_ours(void) {
    return atomic_load(&ours);
}

static void change(int by, bool soon) {
    if (own) link_change_own(by);
    link_change_demand(by, soon);
}

bool waiting_begin(bool is_long) {
    if (!link_managed() || uncounted) return false;
    if (!waiting) change(-1, is_long);
    waiting = true;
    return true;
}

void waiting_end(bool counted) {
    if (!counted || !waiting) return;
    const int result = errno;
    waiting = false;
    change(+1, false);
    errno = result;
}

void waiting_forget_in_child(void) {
    waiting = false;
    own = true;
    atomic_store(&ours, 0);
}

struct start {
    void* (*run)(void*);
    void* argument;
    bool own;
};

static void thread_ended(void* unused) {
    (void)unused;
    if (!waiting && link_managed()) change(-1, false);
}

static void* run_counted(void* data) {
    const struct start start = *(struct start*)data;
    free(data);
    own = start.own;
    void* result = NULL;
    pthread_cleanup_push(thread_ended, NULL);
    result = start.run(start.argument);
    pthread_cleanup_pop(1);
    return result;
}

static void* run_uncounted(void* data) {
    const struct start start = *(struct start*)data;
    free(data);
    uncounted = true;
    void* const result = start.run(start.argument);
    atomic_fetch_sub(&ours, 1);
    return result;
}

static struct start* make_start(void* (*run)(void*), void* argument, bool is_own) {
    struct start* start = malloc(sizeof *start);
    if (start != NULL) *start = (struct start){run, argument, is_own};
    return start;
}

static bool begins_with(const char* name, const char* with) {
    return strncmp(name, with, strlen(with)) == 0;
}

HEDDLE_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                                 void* argument) {
    REAL(pthread_create)
    process_join();
    const void* caller = __builtin_return_address(0);
    const char* by = link_managed() ? object_name_at(caller) : "";
    if (!link_managed() || callers_are_libgomp(caller) || begins_with(by, "libomp") ||
        begins_with(by, "libiomp"))
        return real(thread, attributes, run, argument);
    const bool by_tbb = begins_with(by, "libtbb");
    if (by_tbb)
        tbb_noticed();
    else
        embedded_noticed(caller);
    struct start* start = make_start(run, argument, !by_tbb);
    if (start == NULL) return real(thread, attributes, run, argument);
    if (!by_tbb) link_change_own(+1);
    link_change_demand(+1, false);
    const int failure = real(thread, attributes, run_counted, start);
    if (failure == 0) return 0;
    if (!by_tbb) link_change_own(-1);
    link_change_demand(-1, false);
    free(start);
    return failure;
}

bool waiting_start_uncounted(void* (*run)(void*), void* argument) {
    REAL(pthread_create)
    struct start* start = make_start(run, argument, false);
    if (start == NULL) return false;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    /* Signals belong to the program's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    atomic_fetch_add(&ours, 1);
    const int failure = real(&thread, &attributes, run_uncounted, start);
    if (failure != 0) atomic_fetch_sub(&ours, 1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failure != 0) free(start);
    return failure == 0;
}
