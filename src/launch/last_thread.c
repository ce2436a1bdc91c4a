/* A program whose first thread leaves ends with its last thread, and then as by exit(0). The C library does
 * that when it knows of no more threads; it counts ours.
 *
 * So once the first thread has left, or may, as it is to be cancelled, a thread of ours looks now and then
 * whether the others are ours alone, twice, as one that ends may have made another one meanwhile.
 */
#define _GNU_SOURCE
#include "last_thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "export.h"
#include "link.h"
#include "real.h"
#include "threads.h"
#include "waiting.h"

enum { kLookEveryNs = 10000000 };

/* Beside the first one. */
static bool are_ours_alone(void) {
    return threads_has_ended(getpid()) && threads_count(getpid()) == waiting_ours();
}

static void* wait_for_the_others(void* unused) {
    (void)unused;
    REAL(syscall) /* our own wrapper would take the rest for one of the program's */
    const struct timespec rest = {.tv_nsec = kLookEveryNs};
    for (unsigned looks = 0; looks < 2; looks = are_ours_alone() ? looks + 1 : 0)
        real(SYS_nanosleep, &rest, NULL);
    exit(0);
}

static pthread_t first;
static _Atomic bool watched;

void last_thread_is_first(void) {
    first = pthread_self();
}

void last_thread_forget_in_child(void) {
    last_thread_is_first();
    atomic_store(&watched, false);
}

static void watch(void) {
    if (!atomic_exchange(&watched, true)) (void)waiting_start_uncounted(wait_for_the_others, NULL);
}

void last_thread_leaves(void) {
    if (link_managed() && gettid() == getpid()) watch();
}

HEDDLE_EXPORT __attribute__((noreturn)) void pthread_exit(void* result) {
    REAL(pthread_exit)
    last_thread_leaves();
    real(result);
    __builtin_unreachable();
}

HEDDLE_EXPORT __attribute__((noreturn)) void thrd_exit(int result) {
    REAL(thrd_exit)
    last_thread_leaves();
    real(result);
    __builtin_unreachable();
}

HEDDLE_EXPORT int pthread_cancel(pthread_t thread) {
    REAL(pthread_cancel)
    if (link_managed() && pthread_equal(thread, first) != 0) watch();
    return real(thread);
}
