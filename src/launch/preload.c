/* libheddle-launch.so: what `heddle run` loads into an unmodified program (LD_PRELOAD).
 *
 * Without an arbiter it does nothing. It changes no signal handler, prints nothing but the one line that says
 * why a program is unmanaged, and starts one thread, which sleeps until the program's CPUs change.
 *
 * A child made by fork leaves the parent's link alone and runs where the program may run; most children exec
 * soon, and what they become registers by itself. One that opens a parallel region or makes a thread
 * registers then.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "affinity.h"
#include "callers.h"
#include "follow.h"
#include "last_thread.h"
#include "libgomp.h"
#include "link.h"
#include "news.h"
#include "park.h"
#include "process.h"
#include "real.h"
#include "region.h"
#include "tbb.h"
#include "waiting.h"

/* Set in a forked child of a managed process, and in one that has left. */
static _Atomic bool is_child;

static void note_mask(void) {
    cpu_set_t mask;
    if (affinity_read(&mask)) link_note_mask(&mask);
}

static void begin_fork(void) {
    affinity_before_fork();
    note_mask();
}

static void forget_in_child(void) {
    link_let_go(affinity_is_chosen_by_fork());
    affinity_ends();
    link_forget();
    news_close();
    follow_forget_in_child();
    libgomp_forget_in_child();
    region_forget_in_child();
    tbb_forget_in_child();
    park_forget_in_child();
    waiting_forget_in_child();
    last_thread_forget_in_child();
    atomic_store(&is_child, true);
}

/* Without a thread that follows its grant the process must not keep one. */
static void follow(void) {
    if (follow_start()) return;
    fprintf(stderr, "heddle: %s runs unmanaged: there can be no thread that follows its grant\n",
            program_invocation_short_name);
    (void)affinity_widen();
    affinity_ends();
    link_forget();
    follow_forget_in_child();
}

bool process_leave(void) {
    if (!follow_end()) return false;
    const bool is_chosen = affinity_is_chosen();
    (void)affinity_widen();
    note_mask();
    link_let_go(is_chosen);
    affinity_ends();
    link_forget();
    follow_forget_in_child();
    atomic_store(&is_child, true);
    return true;
}

void process_renounce(void) {
    if (getenv("HEDDLE_ARBITER") != NULL) setenv("HEDDLE_ARBITER", "off", 1);
    atomic_store(&is_child, false);
    if (!link_managed()) return;
    follow_stop();
    tbb_limit(0);
    libgomp_wait_politely(false);
    /* Who binds itself now finds no grant, or is let go with the others. */
    const bool are_bound = follow_is_bound();
    link_forget();
    if (are_bound) follow_let_go();
    affinity_ends();
    news_close();
    follow_forget_in_child();
}

void process_join(void) {
    if (!atomic_load_explicit(&is_child, memory_order_relaxed) || !atomic_exchange(&is_child, false)) return;
    const int result = errno;
    cpu_set_t mask;
    if (affinity_read(&mask) && link_open(&mask) == 0) follow();
    errno = result;
}

__attribute__((constructor)) static void begin(void) {
    real_look_up_all();
    const char* arbiter = getenv("HEDDLE_ARBITER");
    if (arbiter == NULL || *arbiter != '/') return;
    cpu_set_t mask;
    const int failure = affinity_at_start(&mask) ? link_open(&mask) : errno;
    if (failure == EPROTO) {
        fprintf(stderr, "heddle: %s runs unmanaged: what listens at %s is not an arbiter\n",
                program_invocation_short_name, arbiter);
    } else if (failure > 0) {
        fprintf(stderr, "heddle: %s runs unmanaged: no arbiter at %s: %s\n", program_invocation_short_name,
                arbiter, strerror(failure));
    }
    if (failure != 0) return;
    callers_know_first();
    waiting_is_main();
    last_thread_is_first();
    follow();
    pthread_atfork(begin_fork, affinity_after_fork, forget_in_child);
}
