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

#include "affinity.h"
#include "own_masks.h"
#include "real.h"
#include "threads.h"

enum { kLooks = 50, kBetweenLooksNs = 100000, kMostRemembered = 256 };

/* Odd: parked. The helper thread writes, the handlers read and sleep on it. */
static _Atomic uint32_t turn;
/* The threads that ran when the program was parked. */
static pid_t stopped[kMostRemembered];
static unsigned stopped_count;
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

struct look {
    int number;
    bool first;
    bool any;
};

static void interrupt(pid_t thread, void* data) {
    struct look* look = data;
    if (!threads_is_runnable(thread)) return;
    /* One that blocks the signal goes on: to look again would not help. */
    if (look->number > 0 && threads_blocks(thread, SIGURG)) return;
    look->any = true;
    system_call(SYS_tgkill, getpid(), thread, SIGURG);
    if (look->first && stopped_count++ < kMostRemembered) stopped[stopped_count - 1] = thread;
}

bool park_here(void) {
    if (atomic_load(&turn) % 2 == 0) return false;
    sleep_until_end(SIGURG);
    return true;
}

bool park_threads(pid_t helper) {
    if (!prepare()) return true;
    const bool begins = atomic_load(&turn) % 2 == 0;
    if (begins) atomic_fetch_add(&turn, 1);
    if (begins) stopped_count = 0;
    for (int looks = 0; looks < kLooks; ++looks) {
        struct look look = {.number = looks, .first = begins && looks == 0};
        if (!threads_visit(helper, interrupt, &look)) return false;
        if (!look.any) return true;
        const struct timespec pause = {.tv_nsec = kBetweenLooksNs};
        system_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    return true;
}

bool park_spread(const cpu_set_t* cpus) {
    if (atomic_load(&turn) % 2 == 0 || stopped_count < 2 || stopped_count > kMostRemembered ||
        stopped_count > (unsigned)CPU_COUNT(cpus))
        return false;
    cpu_set_t own;
    for (unsigned i = 0; i < stopped_count; ++i)
        if (own_masks_find(stopped[i], &own)) return false;
    size_t cpu = 0;
    for (unsigned i = 0; i < stopped_count; ++i, ++cpu) {
        while (!CPU_ISSET(cpu, cpus)) ++cpu;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (system_call(SYS_tgkill, getpid(), stopped[i], 0) == 0 && !affinity_pass_over(stopped[i]))
            affinity_set(stopped[i], &one);
    }
    return true;
}

void park_end(void) {
    if (atomic_load(&turn) % 2 == 0) return;
    atomic_fetch_add(&turn, 1);
    system_call(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void park_forget_in_child(void) {
    if (atomic_load(&turn) % 2 != 0) atomic_fetch_add(&turn, 1);
}
