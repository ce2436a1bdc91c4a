#define _GNU_SOURCE
#include "follow.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "blocking.h"
#include "libgomp.h"
#include "link.h"

/* Written by the helper thread (before it exists, by the constructor), read at every region. */
static _Atomic unsigned bound_cpus;
static cpu_set_t bound;
static pid_t helper;

unsigned follow_cpus(void) {
    return atomic_load_explicit(&bound_cpus, memory_order_relaxed);
}

static void bind_all_threads(const cpu_set_t* cpus) {
    DIR* tasks = opendir("/proc/self/task");
    if (tasks == NULL) return;
    const struct dirent* entry;
    while ((entry = readdir(tasks)) != NULL) {
        const pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        if (thread > 0 && thread != helper) sched_setaffinity(thread, sizeof *cpus, cpus);
    }
    closedir(tasks);
}

static void obey(void) {
    struct link_grant grant;
    link_read_grant(&grant);
    cpu_set_t lost;
    CPU_XOR(&lost, &bound, &grant.cpus);
    CPU_AND(&lost, &lost, &bound);
    /* A program always runs somewhere: without any CPU it stays where it is until it gets one. */
    if (grant.count > 0) {
        atomic_store_explicit(&bound_cpus, grant.count, memory_order_relaxed);
        if (!CPU_EQUAL(&bound, &grant.cpus)) bind_all_threads(&grant.cpus);
        bound = grant.cpus;
    }
    libgomp_wait_politely(grant.contended);
    if (CPU_COUNT(&lost) > 0) link_send_left(grant.epoch);
}

static void* follow(void* unused) {
    (void)unused;
    helper = (pid_t)syscall(SYS_gettid);
    while (true) {
        while (link_wait()) obey();
        if (!link_reopen()) return NULL;
        /* The new arbiter's first grant comes with its welcome: no CHANGED tells of it. */
        obey();
    }
}

bool follow_start(void) {
    bound = *link_allowed();
    obey();
    /* Signals belong to the program's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = blocking_start_uncounted(follow, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void follow_forget_in_child(void) {
    helper = 0;
    atomic_store(&bound_cpus, 0);
}
