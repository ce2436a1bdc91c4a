/* launch/follow.c without the rest of the launcher: nobody is bound, and time stands still, so that who waits
 * for CPUs is woken or sleeps for ever. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* libgomp_here.c has one. */
#define follow_cpus follow_here_cpus
#include "launch/affinity.h"
#include "launch/follow.h"
#include "launch/libgomp.h"
#include "launch/link.h"
#include "launch/park.h"
#include "launch/real.h"
#include "launch/tbb.h"
#include "launch/threads.h"

static long system_here(long number, ...) {
    if (number != SYS_futex) return 0;
    va_list rest;
    va_start(rest, number);
    void* const word = va_arg(rest, void*);
    const int operation = va_arg(rest, int);
    const unsigned value = va_arg(rest, unsigned);
    va_end(rest);
    return syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}
#undef REAL
#define REAL(name) long (*const real)(long, ...) = system_here;

static cpu_set_t allowed;

static uint64_t now_here(void) {
    return 0;
}
static enum heddle_client_mode mode_here(void) {
    return HEDDLE_MODE_THREADS;
}
static const cpu_set_t* allowed_here(void) {
    return &allowed;
}
static void send_left_here(uint32_t epoch) {
    (void)epoch;
}
static bool threads_follow_here(void) {
    return false;
}
static void wait_politely_here(bool politely) {
    (void)politely;
}
static bool is_parked_here(void) {
    return false;
}
static void park_end_here(void) {}
static void tbb_limit_here(unsigned threads) {
    (void)threads;
}
static unsigned tbb_wanted_here(void) {
    return 0;
}
static enum threads_bound threads_bind_here(pid_t except, const cpu_set_t* cpus) {
    (void)except;
    (void)cpus;
    return THREADS_BOUND;
}
static unsigned threads_count_here(pid_t except) {
    (void)except;
    return 0;
}
static bool threads_runnable_here(pid_t except, uint64_t now_ns, unsigned* runnable) {
    (void)except;
    (void)now_ns;
    *runnable = 0;
    return true;
}
#define link_now_ns now_here
#define link_mode mode_here
#define link_allowed allowed_here
#define link_send_left send_left_here
#define affinity_threads_follow threads_follow_here
#define libgomp_wait_politely wait_politely_here
#define park_here is_parked_here
#define park_end park_end_here
#define tbb_limit tbb_limit_here
#define tbb_wanted tbb_wanted_here
#define threads_bind threads_bind_here
#define threads_count threads_count_here
#define threads_runnable threads_runnable_here
#include "launch/follow.c"

/* One CPU is granted. */
void follow_here_begin(void);
void follow_here_begin(void) {
    atomic_store(&granted_cpus, 1);
    atomic_store(&awaiting, 0);
    atomic_store(&has_turn, false);
    atomic_store(&may_wait_at_ns, 0);
}
/* The helper thread's part. */
void follow_here_grant(unsigned cpus);
void follow_here_grant(unsigned cpus) {
    const struct link_grant grant = {.epoch = 2 * cpus, .count = cpus};
    (void)obey(&grant);
}
