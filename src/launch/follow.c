#define _GNU_SOURCE
#include "follow.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "libgomp.h"
#include "link.h"
#include "park.h"
#include "tbb.h"
#include "threads.h"
#include "waiting.h"

/* How often the threads are looked at while somebody wants more CPUs than it has, and the least number of
 * times longer than the look itself. */
enum { kSampleEveryMs = 5, kSampleShare = 50, kLongestParkNs = 1000000000 };

/* Written by the helper thread (before it exists, by the constructor), read at every region. */
static _Atomic unsigned bound_cpus;
static cpu_set_t bound;
static pid_t helper;

/* Of the helper thread. */
static unsigned runnable_before;
static bool sampled_before;
static uint64_t parked_at_ns;
static int sample_every_ms;

unsigned follow_cpus(void) {
    return atomic_load_explicit(&bound_cpus, memory_order_relaxed);
}

static bool has_all(const struct link_grant* grant) {
    return CPU_EQUAL(&grant->cpus, link_allowed());
}

/* One thread more than CPUs, so that it shows whether there is work for another CPU. */
static void limit_tbb(const struct link_grant* grant) {
    const bool freely = grant->count == 0 || has_all(grant) || link_mode() == HEDDLE_MODE_MASK;
    tbb_limit(freely ? 0 : grant->count + 1);
}

static void obey(const struct link_grant* grant) {
    HEDDLE_FAILPOINT(follow_obeys);
    cpu_set_t lost;
    CPU_XOR(&lost, &bound, &grant->cpus);
    CPU_AND(&lost, &lost, &bound);
    if (grant->parked) {
        park_threads(helper);
        parked_at_ns = link_now_ns();
        return link_send_left(grant->epoch);
    }
    /* A program always runs somewhere: without any CPU it stays where it is until it gets one. */
    if (grant->count > 0) {
        atomic_store_explicit(&bound_cpus, grant->count, memory_order_relaxed);
        if (!CPU_EQUAL(&bound, &grant->cpus) && link_mode() != HEDDLE_MODE_THREADS)
            threads_bind(helper, &grant->cpus);
        HEDDLE_FAILPOINT(follow_has_bound);
        bound = grant->cpus;
    }
    park_end();
    if (CPU_COUNT(&lost) > 0 || grant->leaving) link_send_left(grant->epoch);
    limit_tbb(grant);
    libgomp_wait_politely(grant->contended || !has_all(grant));
}

/* What the program announced is what it could use at most; threads also wait where nobody sees it begin. A
 * program that leaves CPUs idle wants no more than it runs threads. One that fills them wants what it
 * announced, and with TBB, which announces nothing, what TBB was told by the program. */
static unsigned demand_observed(unsigned runnable, unsigned announced, unsigned cpus) {
    if (runnable < cpus) return runnable < announced ? runnable : announced;
    if (runnable > cpus && tbb_wanted() > announced) return tbb_wanted();
    return runnable > announced ? runnable : announced;
}

static void sample(const struct link_grant* grant) {
    const uint64_t start = link_now_ns();
    const int announced = link_announced();
    const unsigned runnable = threads_runnable(helper, start);
    /* Who pauses for less than two looks has not stopped. */
    const unsigned lasting = runnable > runnable_before ? runnable : runnable_before;
    const bool first = !sampled_before;
    runnable_before = runnable;
    sampled_before = true;
    if (first) return;
    link_observe(announced, demand_observed(lasting, announced > 0 ? (unsigned)announced : 0, grant->count));
    limit_tbb(grant);
    const int cost_ms = (int)((link_now_ns() - start) * kSampleShare / 1000000);
    sample_every_ms = cost_ms > kSampleEveryMs ? cost_ms : kSampleEveryMs;
}

/* Threads that slept when the others were parked wake up. An arbiter that says nothing for so long is
 * stopped, and must not stop us. */
static void stay_parked(struct link_grant* grant) {
    if (link_now_ns() - parked_at_ns < kLongestParkNs) {
        park_threads(helper);
    } else {
        grant->parked = false;
        park_end();
    }
}

/* Returns when the arbiter is gone; then the program runs on with what it had. */
static void follow_arbiter(void) {
    struct link_grant grant = {0};
    if (link_read_grant(&grant)) obey(&grant);
    while (true) {
        if (!grant.contended) link_observe_nothing();
        const enum link_news news = link_wait(grant.contended ? sample_every_ms : -1);
        if (news == LINK_GONE) return park_end();
        if (news == LINK_CHANGED) {
            const bool calm = !grant.contended;
            struct link_grant now;
            if (!link_read_grant(&now)) continue;
            grant = now;
            obey(&grant);
            if (calm) {
                sample_every_ms = kSampleEveryMs;
                sampled_before = false;
            }
            continue;
        }
        if (grant.parked)
            stay_parked(&grant);
        else
            sample(&grant);
    }
}

static void* follow(void* unused) {
    (void)unused;
    helper = (pid_t)syscall(SYS_gettid);
    sample_every_ms = kSampleEveryMs;
    do {
        follow_arbiter();
    } while (link_reopen());
    return NULL;
}

bool follow_start(void) {
    bound = *link_allowed();
    struct link_grant grant;
    if (link_read_grant(&grant)) obey(&grant);
    return waiting_start_uncounted(follow, NULL);
}

void follow_forget_in_child(void) {
    helper = 0;
    atomic_store(&bound_cpus, 0);
}
