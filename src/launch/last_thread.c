/* A program whose first thread leaves by pthread_exit() ends with its last thread, and then as by exit(0).
 * The C library does that when it knows of no more threads; it counts ours.
 *
 * So once the first thread has left, a thread of ours looks now and then whether the others are ours alone,
 * twice, as one that ends may have made another one meanwhile.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
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

HEDDLE_EXPORT __attribute__((noreturn)) void pthread_exit(void* result) {
    REAL(pthread_exit)
    if (link_managed() && gettid() == getpid()) (void)waiting_start_uncounted(wait_for_the_others, NULL);
    real(result);
    __builtin_unreachable();
}
