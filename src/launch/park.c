#define _GNU_SOURCE
#include "park.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "real.h"
#include "threads.h"

enum { kLooks = 50, kBetweenLooksNs = 100000 };

/* Odd: parked. The helper thread writes, the handlers read and sleep on it. */
static _Atomic uint32_t turn;
/* Our own wrapper would take the sleep for one of the program's. Resolved before the handler is installed. */
static long (*system_call)(long, ...);

static void sleep_until_end(int signal) {
    (void)signal;
    const int result = errno;
    for (uint32_t seen; ((seen = atomic_load(&turn)) & 1) != 0;)
        system_call(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    errno = result;
}

/* True once the handler is there; a program's own stays. */
static bool prepare(void) {
    struct sigaction present;
    if (sigaction(SIGURG, NULL, &present) != 0) return false;
    if (present.sa_handler == sleep_until_end) return true;
    if ((present.sa_flags & SA_SIGINFO) != 0 ||
        (present.sa_handler != SIG_DFL && present.sa_handler != SIG_IGN))
        return false;
    REAL(syscall)
    system_call = real;
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_handler = sleep_until_end;
    ours.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    return sigaction(SIGURG, &ours, NULL) == 0;
}

static void interrupt(pid_t thread, void* data) {
    bool* any = data;
    if (!threads_is_runnable(thread)) return;
    *any = true;
    system_call(SYS_tgkill, getpid(), thread, SIGURG);
}

bool park_threads(pid_t helper) {
    if (!prepare()) return false;
    if (atomic_load(&turn) % 2 == 0) atomic_fetch_add(&turn, 1);
    for (int look = 0; look < kLooks; ++look) {
        bool any = false;
        threads_visit(helper, interrupt, &any);
        if (!any) return true;
        const struct timespec pause = {.tv_nsec = kBetweenLooksNs};
        system_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    return false;
}

void park_end(void) {
    if (atomic_load(&turn) % 2 == 0) return;
    atomic_fetch_add(&turn, 1);
    system_call(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void park_forget_in_child(void) {
    if (atomic_load(&turn) % 2 != 0) atomic_fetch_add(&turn, 1);
}
