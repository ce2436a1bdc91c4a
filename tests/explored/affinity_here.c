/* launch/affinity.c on a system that knows a thread's mask as one word, with grants of the scenario's. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launch/affinity.h"
#include "launch/follow.h"
#include "launch/link.h"
#include "launch/own_masks.h"
#include "launch/real.h"

enum { kThreads = 8 };
static _Atomic unsigned long masks[kThreads];
static _Atomic uint32_t grant_epoch;
static cpu_set_t allowed;

static unsigned long word_of(const cpu_set_t* mask) {
    return mask->__bits[0];
}
static cpu_set_t mask_of_word(unsigned long word) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    mask.__bits[0] = word;
    return mask;
}

/* Who calls for thread 0 is kSelf. */
enum { kSelf = 5 };
static long system_here(long number, ...) {
    va_list rest;
    va_start(rest, number);
    if (number == SYS_sched_setaffinity) {
        const pid_t thread = va_arg(rest, pid_t);
        (void)va_arg(rest, size_t);
        const cpu_set_t* mask = va_arg(rest, const cpu_set_t*);
        atomic_store(&masks[thread == 0 ? kSelf : thread], word_of(mask));
    } else if (number == SYS_sched_getaffinity) {
        (void)va_arg(rest, pid_t);
        (void)va_arg(rest, size_t);
        *va_arg(rest, cpu_set_t*) = mask_of_word(atomic_load(&masks[kSelf]));
        va_end(rest);
        return sizeof(cpu_set_t);
    } else if (number == SYS_nanosleep) {
        sched_yield();
    }
    va_end(rest);
    return 0;
}
#undef REAL
#define REAL(name) long (*const real)(long, ...) = system_here;

/* See affinity_number_of(). */
static int clock_here(pthread_t thread, clockid_t* clock) {
    (void)thread;
    *clock = (clockid_t)(~(unsigned)kSelf << 3 | 6U);
    return 0;
}

/* Grants alternate: CPU 0, then both. */
bool affinity_here_grant(struct link_grant* grant);
bool affinity_here_grant(struct link_grant* grant) {
    grant->epoch = atomic_load(&grant_epoch);
    grant->cpus = mask_of_word(grant->epoch % 4 == 2 ? 1 : 3);
    grant->count = (uint32_t)CPU_COUNT(&grant->cpus);
    return true;
}
static bool managed_here(void) {
    return true;
}
static int mode_here(void) {
    return HEDDLE_MODE_MASK;
}
static const cpu_set_t* allowed_here(void) {
    return &allowed;
}
static uint32_t epoch_here(void) {
    return 0;
}
static bool is_bound_here(void) {
    return true;
}
static pid_t no_helper_here(void) {
    return 0;
}
static void change_widened_here(int change) {
    (void)change;
}
#define pthread_getcpuclockid clock_here
#define link_read_grant affinity_here_grant
#define link_managed managed_here
#define link_mode mode_here
#define link_allowed allowed_here
#define follow_epoch epoch_here
#define follow_is_bound is_bound_here
#define follow_helper no_helper_here
#define link_change_widened change_widened_here
/* park_here.c has these as well. */
#define affinity_set affinity_here_set
#define affinity_pass_over affinity_here_pass_over
#include "launch/affinity.c"

unsigned long affinity_here_mask(void);
unsigned long affinity_here_mask(void) {
    return atomic_load(&masks[kSelf]);
}
void affinity_here_begin(bool has_all);
void affinity_here_begin(bool has_all) {
    affinity_ends();
    allowed = mask_of_word(3);
    affinity_begins();
    atomic_store(&grant_epoch, has_all ? 4 : 6);
    for (int i = 0; i < kThreads; ++i) atomic_store(&masks[i], has_all ? 3 : 1);
}
/* The helper thread's part in a change. */
void affinity_here_change(void);
void affinity_here_change(void) {
    struct link_grant grant;
    atomic_fetch_add(&grant_epoch, 2);
    affinity_here_grant(&grant);
    (void)affinity_bind(kSelf, &grant.cpus);
}
/* The same by a look at all threads, which passes over those that are widened. */
void affinity_here_look(void);
void affinity_here_look(void) {
    struct link_grant grant;
    atomic_fetch_add(&grant_epoch, 2);
    affinity_here_grant(&grant);
    affinity_look_begins();
    if (!affinity_pass_over(kSelf)) (void)affinity_bind(kSelf, &grant.cpus);
    affinity_look_ends();
}
/* The program starts another one, which may run where its thread may. */
unsigned long affinity_here_start_a_program(void);
unsigned long affinity_here_start_a_program(void) {
    const struct affinity_widened widened = affinity_widen();
    const unsigned long inherited = affinity_here_mask();
    affinity_narrow(&widened);
    return inherited;
}
/* The program's, for a thread that is the calling one or not. */
void affinity_here_choose(bool is_caller, unsigned long word);
void affinity_here_choose(bool is_caller, unsigned long word) {
    const cpu_set_t mask = mask_of_word(word);
    (void)affinity_set_by_program(is_caller ? 0 : kSelf, sizeof mask, &mask);
}
