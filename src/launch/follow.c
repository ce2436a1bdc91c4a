#define _GNU_SOURCE
#include "follow.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "affinity.h"
#include "base/failpoint.h"
#include "base/short_turns.h"
#include "libgomp.h"
#include "link.h"
#include "park.h"
#include "real.h"
#include "tbb.h"
#include "threads.h"
#include "waiting.h"

/* How often the threads are looked at while somebody wants more CPUs than it has, and the least number of
 * times longer than the look itself. Who was found to be as busy as announced for so many looks is looked at
 * more seldom. */
enum {
    kSampleEveryMs = 5,
    kCalmLooks = 8,
    kCalmEveryMs = 20,
    kSampleShare = 50,
    kLongestParkNs = 1000000000
};
enum { kBindTries = 20, kBindAgainNs = 1000000 };
enum { kEndTries = 1000, kEndAgainNs = 100000 };

/* Written by the helper thread (before it exists, by the constructor): how many CPUs are granted, read at
 * every region, and whether the threads are bound to some of those that the program may use. */
static _Atomic unsigned granted_cpus;
static _Atomic bool is_bound;
static _Atomic uint32_t bound_epoch;
static cpu_set_t bound;
/* The masks may be others: an arbiter that was killed, or the next one that ended its fences, changed them,
 * or threads were spread. */
static bool may_be_unbound;
static _Atomic pid_t helper;
static _Atomic bool is_to_end; /* the helper thread */

/* Of the helper thread. */
static unsigned runnable_before;
static int announced_before;
static unsigned looks;      /* in a row, that found the same announced */
static unsigned calm_looks; /* in a row, that found what was announced */
static uint64_t parked_at_ns;
static int least_sample_ms; /* for what a look costs */

/* Regions that wait for an answer: how long at most, how many, and when the next may, since waits in vain
 * are to cost no more than a kVainShare-th of the time. */
enum { kAnswerNs = 500000, kTurnNs = 2000000, kVainShare = 32 };
static _Atomic unsigned awaiting;
static _Atomic bool has_turn; /* CPUs come when those have left them whose turn ends */
static _Atomic uint64_t may_wait_at_ns;

unsigned follow_cpus(void) {
    return atomic_load_explicit(&granted_cpus, memory_order_relaxed);
}

bool follow_is_bound(void) {
    return atomic_load(&is_bound);
}

pid_t follow_helper(void) {
    return atomic_load(&helper);
}

uint32_t follow_epoch(void) {
    return atomic_load(&bound_epoch);
}

unsigned follow_cpus_soon(unsigned wanted) {
    REAL(syscall) /* our own wrapper would take the wait for one of the program's */
    const uint64_t start = link_now_ns();
    unsigned cpus = atomic_load(&granted_cpus);
    if (cpus >= wanted || start < atomic_load_explicit(&may_wait_at_ns, memory_order_relaxed)) return cpus;
    atomic_fetch_add(&awaiting, 1);
    uint64_t now = start;
    while ((cpus = atomic_load(&granted_cpus)) < wanted) {
        const uint64_t end = start + (atomic_load(&has_turn) ? kTurnNs : kAnswerNs);
        if (now >= end) break;
        const struct timespec rest = {.tv_nsec = (long)(end - now)};
        real(SYS_futex, &granted_cpus, FUTEX_WAIT_PRIVATE, cpus, &rest, NULL, 0);
        now = link_now_ns();
    }
    atomic_fetch_sub(&awaiting, 1);
    if (cpus >= wanted) return cpus;
    /* The answer may be that it is others' turn first. */
    if (park_here()) return atomic_load(&granted_cpus);
    atomic_store(&may_wait_at_ns, now + (now - start) * kVainShare);
    return cpus;
}

static bool has_all(const struct link_grant* grant) {
    return CPU_EQUAL(&grant->cpus, link_allowed());
}

/* In its turn a program waits as it would alone, and so do regions that often meet and have a CPU a thread.
 */
static bool is_to_be_polite(const struct link_grant* grant) {
    return !has_all(grant) || (grant->contended && !grant->turn && !link_meets_often());
}

/* One thread more than CPUs, so that it shows whether there is work for another CPU. */
static void limit_tbb(const struct link_grant* grant) {
    const bool freely = grant->count == 0 || has_all(grant) || link_mode() == HEDDLE_MODE_MASK;
    tbb_limit(freely ? 0 : grant->count + 1);
}

/* Where the arbiter holds the process by a cpuset group, a grant may be read before the group follows it.
 * False: the threads are where they were, as they cannot be listed. */
static bool bind_to(const cpu_set_t* cpus) {
    REAL(syscall) /* our own wrapper would take the rest for one of the program's */
    const struct timespec rest = {.tv_nsec = kBindAgainNs};
    enum threads_bound now;
    for (int tries = 1; (now = threads_bind(helper, cpus)) == THREADS_REFUSED && tries < kBindTries; ++tries)
        real(SYS_nanosleep, &rest, NULL);
    may_be_unbound = now == THREADS_UNSEEN;
    return now != THREADS_UNSEEN;
}

/* False: not done, to be tried again. Then the arbiter is not told that CPUs were left, and may see to it. */
static bool obey(const struct link_grant* grant) {
    HEDDLE_FAILPOINT(follow_obeys);
    cpu_set_t lost;
    CPU_XOR(&lost, &bound, &grant->cpus);
    CPU_AND(&lost, &lost, &bound);
    if (grant->parked) {
        const bool seen = park_threads(helper);
        parked_at_ns = link_now_ns();
        if (seen) link_send_left(grant->epoch);
        return seen;
    }
    bool obeyed = true;
    /* A program always runs somewhere: without any CPU it stays where it is until it gets one. */
    if (grant->count > 0) {
        /* Told before it is so: a thread that starts a program meanwhile is to widen itself. */
        if (link_mode() != HEDDLE_MODE_THREADS && !has_all(grant)) atomic_store(&is_bound, true);
        may_be_unbound |= affinity_threads_follow();
        if ((may_be_unbound || !CPU_EQUAL(&bound, &grant->cpus)) && link_mode() != HEDDLE_MODE_THREADS)
            obeyed = bind_to(&grant->cpus);
        const bool spread = grant->turn && link_mode() != HEDDLE_MODE_THREADS && park_spread(&grant->cpus);
        if (spread) may_be_unbound = true;
        HEDDLE_FAILPOINT(follow_has_bound);
        if (obeyed) {
            bound = grant->cpus;
            atomic_store(&bound_epoch, grant->epoch);
        }
        atomic_store(&is_bound, link_mode() != HEDDLE_MODE_THREADS && (spread || !has_all(grant)));
    }
    atomic_store(&has_turn, grant->turn);
    atomic_store(&granted_cpus, grant->count);
    if (atomic_load(&awaiting) > 0)
        syscall(SYS_futex, &granted_cpus, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    park_end();
    if (obeyed && (CPU_COUNT(&lost) > 0 || grant->leaving)) link_send_left(grant->epoch);
    limit_tbb(grant);
    libgomp_wait_politely(is_to_be_polite(grant));
    return obeyed;
}

/* What the program announced is what it could use at most; threads also wait where nobody sees it begin. A
 * program that leaves CPUs idle wants no more than it runs threads. One that fills them wants what it
 * announced, and with TBB, which announces nothing, what TBB was told by the program. */
static unsigned demand_observed(unsigned runnable, unsigned announced, unsigned cpus) {
    if (runnable < cpus) return runnable < announced ? runnable : announced;
    if (runnable > cpus && tbb_wanted() > announced) return tbb_wanted();
    return runnable > announced ? runnable : announced;
}

static int sample_every_ms(void) {
    const int wanted = calm_looks < kCalmLooks ? kSampleEveryMs : kCalmEveryMs;
    return least_sample_ms > wanted ? least_sample_ms : wanted;
}

static void sample(const struct link_grant* grant) {
    const uint64_t start = link_now_ns();
    if (link_mode() != HEDDLE_MODE_THREADS && grant->count > 0 && affinity_threads_follow())
        (void)bind_to(&bound);
    const int announced = link_announced();
    unsigned runnable = 0;
    if (!threads_runnable(helper, start, &runnable)) return link_observe_nothing();
    /* The first look sees what ran before the program announced this; the second is the first that counts.
     * Who pauses for less than two looks has not stopped. */
    looks = looks > 0 && announced == announced_before ? looks + 1 : 1;
    const unsigned lasting = runnable > runnable_before ? runnable : runnable_before;
    const unsigned wanted = announced > 0 ? (unsigned)announced : 0;
    runnable_before = runnable;
    announced_before = announced;
    if (looks >= 3) {
        link_observe(announced, demand_observed(lasting, wanted, grant->count));
        limit_tbb(grant);
    }
    const bool is_calm = looks >= 3 && demand_observed(runnable, wanted, grant->count) == wanted;
    calm_looks = is_calm ? calm_looks + 1 : 0;
    libgomp_wait_politely(is_to_be_polite(grant));
    least_sample_ms = (int)((link_now_ns() - start) * kSampleShare / 1000000);
}

/* Threads that slept when the others were parked wake up. An arbiter that says nothing for so long is
 * stopped, and must not stop us. */
static void stay_parked(struct link_grant* grant) {
    if (link_now_ns() - parked_at_ns < kLongestParkNs) {
        (void)park_threads(helper);
    } else {
        grant->parked = false;
        park_end();
    }
}

/* Returns when the arbiter is gone; then the program runs on with what it had. */
static void follow_arbiter(void) {
    struct link_grant grant = {0};
    bool obeyed = !link_read_grant(&grant) || obey(&grant);
    while (true) {
        if (!grant.contended) link_observe_nothing();
        const enum link_news news = link_wait(grant.contended ? sample_every_ms()
                                              : obeyed        ? -1
                                                              : kCalmEveryMs);
        if (news == LINK_GONE) {
            may_be_unbound = true;
            /* In its turn each thread is on one CPU, which those would inherit that it makes from now on. */
            if (grant.turn && grant.count > 0 && link_mode() != HEDDLE_MODE_THREADS) (void)bind_to(&bound);
            return park_end();
        }
        if (news == LINK_CHANGED) {
            struct link_grant now;
            if (!link_read_grant(&now)) continue;
            if (!grant.contended) least_sample_ms = 0;
            calm_looks = 0;
            /* A region that runs already cannot use what came now. */
            if (!grant.contended || now.count > grant.count) looks = 0;
            grant = now;
            obeyed = obey(&grant);
            continue;
        }
        if (!obeyed)
            obeyed = obey(&grant);
        else if (grant.parked)
            stay_parked(&grant);
        else
            sample(&grant);
    }
}

static void* follow(void* unused) {
    (void)unused;
    const bool is_free = affinity_set(0, link_allowed());
    helper = (pid_t)syscall(SYS_gettid);
    heddle_prefer_short_turns(); /* the arbiter waits for its answers */
    do {
        if (is_free) link_show_witness(helper);
        follow_arbiter();
    } while (!atomic_load(&is_to_end) && link_reopen());
    return NULL;
}

/* Threads but the calling one. */
static unsigned others(void) {
    REAL(syscall)
    return threads_count((pid_t)real(SYS_gettid));
}

static void rest_a_moment(void) {
    REAL(syscall) /* our own wrapper would take the rest for one of the program's */
    const struct timespec rest = {.tv_nsec = kEndAgainNs};
    real(SYS_nanosleep, &rest, NULL);
}

/* How many rests it took until the helper thread had begun. */
static int tell_to_end(void (*hang_up)(void)) {
    int rests = 0;
    for (; atomic_load(&helper) == 0 && rests < kEndTries; ++rests) rest_a_moment();
    atomic_store(&is_to_end, true);
    hang_up();
    return rests;
}

bool follow_end(void) {
    if (others() != 1) return false;
    for (int rests = tell_to_end(link_hang_up); others() > 0 && rests < kEndTries; ++rests) rest_a_moment();
    atomic_store(&is_to_end, false);
    return others() == 0;
}

void follow_stop(void) {
    REAL(syscall)
    for (int rests = tell_to_end(link_renounce);
         real(SYS_tgkill, getpid(), helper, 0) == 0 && rests < kEndTries; ++rests)
        rest_a_moment();
}

void follow_let_go(void) {
    (void)threads_bind(0, link_allowed());
}

/* The helper thread begins on the CPU of its maker, and leaves it when it first runs. Elsewhere it would wake
 * an idle CPU, now and again to be ended: a tenth of a millisecond for a program that ends soon. */
static bool start_here(void) {
    const int cpu = sched_getcpu();
    cpu_set_t before, here;
    const bool known = cpu >= 0 && affinity_read(&before);
    CPU_ZERO(&here);
    if (known) CPU_SET((size_t)cpu, &here);
    if (known) affinity_set(0, &here);
    const bool started = waiting_start_uncounted(follow, NULL);
    /* The helper may have bound this thread to another grant meanwhile. */
    if (known && link_mode() == HEDDLE_MODE_THREADS)
        affinity_set(0, &before);
    else if (known)
        affinity_narrow(&(struct affinity_widened){.is = true, .before = before});
    return started;
}

bool follow_start(void) {
    affinity_begins();
    bound = *link_allowed();
    struct link_grant grant;
    /* Who is parked is let go by the helper, which does both. */
    if (link_read_grant(&grant) && !grant.parked) (void)obey(&grant);
    return start_here();
}

void follow_forget_in_child(void) {
    helper = 0;
    atomic_store(&granted_cpus, 0);
    atomic_store(&bound_epoch, 0);
    atomic_store(&is_bound, false); /* it runs where the program may; a mask that it has now is its own */
}
