#define _GNU_SOURCE
#include "affinity.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "follow.h"
#include "link.h"
#include "own_masks.h"
#include "real.h"

/* The grant that the calling thread has bound itself to, perhaps before the helper thread has seen it. */
static __thread struct {
    bool is;
    cpu_set_t mask;
} followed_here;
/* What a child of vfork has bound itself to, whose memory this is as well. */
static __thread struct {
    pid_t process;
    cpu_set_t mask;
} chosen_by_vfork;

/* A thread's own mask could not be noted: where there is no note the program is told the truth. */
static _Atomic bool lacks_notes;

/* Where a constructor of the program's, as libgomp's with OMP_PROC_BIND, bound the first thread before ours:
 * what it began with, and what it was bound to. */
static struct {
    _Atomic bool is_past; /* our constructor's turn has come */
    bool is_known;
    bool is_bound;
    bool is_noted;
    cpu_set_t mask;
    cpu_set_t own;
} start;

/* Threads that are widened, for whoever binds threads; with kPassedOver where it should have been bound
 * meanwhile. A child of vfork has this memory, too, and never gives a place back: those of `process` alone
 * have one. Without a place a child may be born with the grant's mask. */
enum { kPlaces = 16, kMostRests = 2000, kRestNs = 20000, kPassedOver = 1 << 30 };
static _Atomic pid_t widened_threads[kPlaces];
static _Atomic pid_t process;
static _Atomic uint32_t look; /* odd: under way */

static bool is_by_vfork(void) {
    return getpid() != atomic_load(&process);
}

/* In a child of vfork the one that waits for it. */
static pid_t this_thread(void) {
    pid_t number = 0;
    (void)affinity_number_of(pthread_self(), &number);
    return number;
}

/* By the number of its clock: see threads.c. */
bool affinity_number_of(pthread_t thread, pid_t* number) {
    clockid_t clock;
    if (pthread_getcpuclockid(thread, &clock) != 0) return false;
    *number = (pid_t)(~(unsigned)clock >> 3);
    return true;
}

bool affinity_read(cpu_set_t* mask) {
    REAL(syscall) /* our own wrapper would tell the program's own mask */
    CPU_ZERO(mask);
    return real(SYS_sched_getaffinity, 0, sizeof *mask, mask) > 0;
}

void affinity_before_binding(void) {
    if (atomic_load(&start.is_past) || start.is_known || gettid() != getpid()) return;
    start.is_known = affinity_read(&start.mask);
}

bool affinity_at_start(cpu_set_t* mask) {
    atomic_store(&start.is_past, true);
    if (!start.is_known) return affinity_read(mask);
    start.is_bound = affinity_read(&start.own) && !CPU_EQUAL(&start.own, &start.mask);
    *mask = start.mask;
    return true;
}

void affinity_ends(void) {
    atomic_store(&process, 0);
    for (int i = 0; i < kPlaces; ++i) atomic_store(&widened_threads[i], 0);
    atomic_store(&look, 0);
    own_masks_forget_all();
    atomic_store(&lacks_notes, false);
    followed_here.is = false;
}

void affinity_look_begins(void) {
    atomic_fetch_or(&look, 1);
}

void affinity_look_ends(void) {
    atomic_fetch_add(&look, 1);
}

bool affinity_pass_over(pid_t thread) {
    for (int i = 0; i < kPlaces; ++i) {
        pid_t found = thread;
        if (atomic_compare_exchange_strong(&widened_threads[i], &found, thread | kPassedOver) ||
            found == (thread | kPassedOver))
            return true;
    }
    return false;
}

static _Atomic pid_t* take_place(void) {
    REAL(syscall)
    const pid_t thread = this_thread();
    for (int i = 0; i < kPlaces; ++i) {
        pid_t nobody = 0;
        if (!atomic_compare_exchange_strong(&widened_threads[i], &nobody, thread)) continue;
        link_change_widened(1);
        const uint32_t seen = atomic_load(&look);
        const struct timespec rest = {.tv_nsec = kRestNs};
        for (int rests = 0; seen % 2 != 0 && atomic_load(&look) == seen && rests < kMostRests; ++rests)
            real(SYS_nanosleep, &rest, NULL);
        return &widened_threads[i];
    }
    return NULL;
}

/* A thread that is cancelled while it is widened has left its place. */
static void give_places_back(void) {
    const pid_t thread = this_thread();
    for (int i = 0; i < kPlaces; ++i)
        if ((atomic_load(&widened_threads[i]) & ~kPassedOver) == thread) {
            atomic_store(&widened_threads[i], 0);
            link_change_widened(-1);
        }
}

uint32_t affinity_epoch(void) {
    struct link_grant grant;
    return link_read_grant(&grant) ? grant.epoch : 0;
}

bool affinity_concerns(pid_t thread) {
    REAL(syscall)
    if (thread == 0) return true;
    const int result = errno;
    const bool is_ours = real(SYS_tgkill, getpid(), thread, 0) == 0;
    errno = result;
    return is_ours;
}

/* A thread took its mask from a grant that the helper thread may never see, or another one of the program's.
 */
static _Atomic bool threads_follow;

bool affinity_threads_follow(void) {
    return atomic_exchange(&threads_follow, false);
}

/* When it has done so, and before it asks whether that was the newest grant. */
static void note_follows(uint32_t epoch) {
    if (epoch != follow_epoch()) atomic_store(&threads_follow, true);
}

/* False where the grant binds nothing. */
static bool granted(cpu_set_t* cpus) {
    if (!link_managed() || link_mode() == HEDDLE_MODE_THREADS) return false;
    struct link_grant grant;
    if (!link_read_grant(&grant)) return false;
    *cpus = grant.cpus;
    return grant.count > 0 && !CPU_EQUAL(cpus, link_allowed());
}

/* Where the program has bound the thread to; false: nowhere. */
static bool find_own(pid_t thread, cpu_set_t* mask) {
    if (chosen_by_vfork.process != 0 && is_by_vfork() && chosen_by_vfork.process == getpid()) {
        *mask = chosen_by_vfork.mask;
        return true;
    }
    return own_masks_find(thread, mask);
}

bool affinity_set(pid_t thread, const cpu_set_t* cpus) {
    REAL(syscall) /* our own wrapper would put the grant in the place of the program's mask */
    return real(SYS_sched_setaffinity, thread, sizeof *cpus, cpus) == 0;
}

/* Those that are in both. False: none are. */
static bool meet(const cpu_set_t* one, const cpu_set_t* other, cpu_set_t* both) {
    CPU_AND(both, one, other);
    return CPU_COUNT(both) > 0;
}

/* Those of `cpus` that the program has bound the thread to, or all, where those are none. */
static cpu_set_t within(const cpu_set_t* own, const cpu_set_t* cpus) {
    cpu_set_t both;
    if (CPU_EQUAL(cpus, link_allowed())) return *own;
    return meet(own, cpus, &both) ? both : *cpus;
}

/* Where the system does not allow its own ones any more it gets the others. */
static bool bind_within(pid_t thread, const cpu_set_t* own, const cpu_set_t* cpus) {
    const cpu_set_t mask = within(own, cpus);
    return affinity_set(thread, &mask) || (errno == EINVAL && affinity_set(thread, cpus));
}

bool affinity_bind(pid_t thread, const cpu_set_t* cpus) {
    const pid_t noted_as = thread == 0 ? this_thread() : thread;
    cpu_set_t own, now;
    bool is_own = find_own(noted_as, &own), was_own, bound;
    do {
        was_own = is_own;
        if (is_own) now = own;
        bound = is_own ? bind_within(thread, &own, cpus) : affinity_set(thread, cpus);
        const int result = errno;
        /* It may have been bound by the program meanwhile, which notes that first. */
        is_own = find_own(noted_as, &own);
        errno = result;
    } while (is_own != was_own || (is_own && !CPU_EQUAL(&now, &own)));
    return bound;
}

/* Binds the calling thread to the grant; to `otherwise`, or as it is, where that has no CPU or cannot be
 * read. */
static void follow_grant(const cpu_set_t* otherwise) {
    struct link_grant grant;
    do {
        if (!link_read_grant(&grant)) grant.epoch = grant.count = 0;
        if (grant.count > 0) {
            followed_here.is = affinity_bind(0, &grant.cpus);
            followed_here.mask = grant.cpus;
        } else if (otherwise != NULL) {
            affinity_set(0, otherwise);
        }
        note_follows(grant.epoch);
    } while (affinity_epoch() != grant.epoch); /* else it may stay where the helper thread has just left */
    if (!link_managed()) affinity_bind(0, link_allowed());
}

/* What is beyond those that the program may have is not for it; unless it wants those alone. */
static cpu_set_t allowed_of(const cpu_set_t* wanted) {
    cpu_set_t both;
    return meet(wanted, link_allowed(), &both) ? both : *wanted;
}

/* That it may run wherever the program may is noted of another thread, which may be about to note the mask of
 * its maker. */
static void note_own(pid_t thread, const cpu_set_t* mask) {
    if (CPU_EQUAL(mask, link_allowed()) && thread == this_thread())
        own_masks_forget(thread);
    else if (!own_masks_note(thread, mask))
        atomic_store(&lacks_notes, true);
}

void affinity_begins(void) {
    atomic_store(&process, getpid());
    cpu_set_t now;
    if (!start.is_bound || (start.is_noted && !(affinity_read(&now) && CPU_EQUAL(&now, &start.own)))) return;
    note_own(this_thread(), &start.own);
    start.is_noted = true;
}

bool affinity_find_own(cpu_set_t* mask) {
    return find_own(this_thread(), mask) && !CPU_EQUAL(mask, link_allowed());
}

bool affinity_is_chosen(void) {
    cpu_set_t own;
    return affinity_find_own(&own) && !(start.is_bound && CPU_EQUAL(&own, &start.own));
}

void affinity_thread_begins(const cpu_set_t* own, uint32_t epoch) {
    if (!link_managed() || link_mode() == HEDDLE_MODE_THREADS) return;
    if (own != NULL) {
        /* Its maker may have bound it meanwhile. */
        const cpu_set_t mask = allowed_of(own);
        if (!CPU_EQUAL(&mask, link_allowed()) && !own_masks_note_first(this_thread(), &mask))
            atomic_store(&lacks_notes, true);
    }
    if (affinity_epoch() != epoch) follow_grant(NULL);
}

void affinity_thread_ends(void) {
    give_places_back();
    own_masks_forget(this_thread());
}

/* The calling thread is not where the program would have it: it was bound by the helper thread; by the
 * arbiter, for want of an answer; by itself, before the helper has seen the grant; or is as before, since it
 * was passed over as all were let go. One that has chosen its mask, and has another, has been bound or let go
 * by us. */
static bool is_bound(const cpu_set_t* now, const _Atomic pid_t* place) {
    cpu_set_t cpus;
    return follow_is_bound() || granted(&cpus) || (followed_here.is && CPU_EQUAL(&followed_here.mask, now)) ||
           (place != NULL && (*place & kPassedOver) != 0);
}

struct affinity_widened affinity_widen(void) {
    struct affinity_widened widened = {.is = false};
    if (!link_managed() || link_mode() == HEDDLE_MODE_THREADS) return widened;
    const int result = errno;
    /* A forked child has no link: this one shares its parent's memory, and may have its mask from before the
     * parent was let go. */
    const bool by_vfork = is_by_vfork();
    if (!by_vfork) widened.place = take_place();
    cpu_set_t own;
    const bool is_own = find_own(this_thread(), &own);
    if (!is_own) own = *link_allowed();
    if (affinity_read(&widened.before) && (is_own || by_vfork || is_bound(&widened.before, widened.place)) &&
        !CPU_EQUAL(&widened.before, &own))
        widened.is = affinity_set(0, &own);
    errno = result;
    return widened;
}

void affinity_narrow(const struct affinity_widened* widened) {
    const pid_t left = widened->place != NULL ? atomic_exchange(widened->place, 0) : 0;
    if ((widened->is || (left & kPassedOver) != 0) && link_managed()) {
        const int result = errno;
        follow_grant(widened->is ? &widened->before : NULL);
        errno = result;
    }
    if (left != 0) link_change_widened(-1); /* it is where it should be: see has_undone() of the arbiter */
}

/* Of the calling thread, which forks. */
static __thread struct affinity_widened fork_widened;
static __thread bool fork_is_chosen;

void affinity_before_fork(void) {
    fork_is_chosen = affinity_is_chosen();
    fork_widened = affinity_widen();
}

void affinity_after_fork(void) {
    affinity_narrow(&fork_widened);
}

bool affinity_is_chosen_by_fork(void) {
    return fork_is_chosen;
}

void affinity_hide_grant(pid_t thread, cpu_set_t* mask, size_t bytes) {
    if (!link_managed() || link_mode() == HEDDLE_MODE_THREADS) return;
    cpu_set_t own;
    if (!find_own(thread == 0 ? this_thread() : thread, &own)) {
        if (atomic_load(&lacks_notes)) return;
        own = *link_allowed();
    }
    memcpy(mask, &own, bytes < sizeof own ? bytes : sizeof own);
}

/* Binds the thread to those CPUs of its own that are granted, as where it puts back what it has read; where
 * there are none, to its own all the same. Noted before it is so, for who binds threads to a grant at this
 * moment. */
static int set_own(pid_t thread, const cpu_set_t* mask) {
    REAL(syscall)
    const pid_t noted_as = thread == 0 ? this_thread() : thread;
    cpu_set_t before;
    const bool was_own = own_masks_find(noted_as, &before);
    note_own(noted_as, mask);
    int failure;
    uint32_t epoch;
    do {
        epoch = affinity_epoch();
        cpu_set_t cpus, now = *mask;
        if (granted(&cpus) && !meet(mask, &cpus, &now)) {
            now = *mask;
            atomic_store(&threads_follow, true);
        }
        failure = (int)real(SYS_sched_setaffinity, thread, sizeof now, &now);
        if (failure == 0) note_follows(epoch);
    } while (failure == 0 && affinity_epoch() != epoch);
    if (failure == 0) return 0;
    const int result = errno;
    if (was_own)
        note_own(noted_as, &before);
    else
        own_masks_forget(noted_as);
    errno = result;
    return failure;
}

/* False: it names CPUs beyond those that we know of. */
static bool read_program_mask(size_t bytes, const cpu_set_t* mask, cpu_set_t* read) {
    CPU_ZERO(read);
    memcpy(read, mask, bytes < sizeof *read ? bytes : sizeof *read);
    for (size_t i = sizeof *read; i < bytes; ++i)
        if (((const char*)mask)[i] != 0) return false;
    return true;
}

long affinity_set_by_program(pid_t thread, size_t bytes, const cpu_set_t* mask) {
    REAL(syscall)
    cpu_set_t read;
    /* The helper is the witness of what others want of all threads. */
    if (thread != 0 && mask != NULL && thread == follow_helper()) return 0;
    affinity_before_binding();
    /* Older runtimes ask with no mask at all whether there is such a call. */
    const bool is_ours =
        mask != NULL && link_managed() && link_mode() != HEDDLE_MODE_THREADS && affinity_concerns(thread);
    if (!is_ours || !read_program_mask(bytes, mask, &read))
        return real(SYS_sched_setaffinity, thread, bytes, mask);
    const cpu_set_t own = allowed_of(&read);
    if (!is_by_vfork()) return set_own(thread, &own);
    const long failure = real(SYS_sched_setaffinity, thread, bytes, mask);
    if (failure != 0) return failure;
    chosen_by_vfork.process = getpid();
    chosen_by_vfork.mask = own;
    return 0;
}
