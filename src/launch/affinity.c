#define _GNU_SOURCE
#include "affinity.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "export.h"
#include "follow.h"
#include "link.h"
#include "real.h"
#include "waiting.h"

/* The program has chosen CPUs itself: it is told the truth about them. For good where it was for another
 * thread; else while there are threads that have chosen their own. */
static _Atomic bool has_bound_others;
static _Atomic int have_chosen;

/* What the program has bound the calling thread to, by a call of that thread; and the grant that the thread
 * has bound itself to, perhaps before the helper thread has seen it. */
struct mask_here {
    bool is;
    cpu_set_t mask;
};
static __thread struct mask_here chosen_here;
static __thread struct mask_here followed_here;

/* Threads that are widened, for whoever binds threads; with kPassedOver where it should have been bound
 * meanwhile. A child of vfork has this memory, too, and never gives a place back: those of `process` alone
 * have one. Without a place a child may be born with the grant's mask. */
enum { kPlaces = 16, kMostRests = 2000, kRestNs = 20000, kPassedOver = 1 << 30 };
static _Atomic pid_t widened_threads[kPlaces];
static _Atomic pid_t process;
static _Atomic uint32_t look; /* odd: under way */

void affinity_begins(void) {
    atomic_store(&process, getpid());
}

void affinity_ends(void) {
    atomic_store(&process, 0);
    for (int i = 0; i < kPlaces; ++i) atomic_store(&widened_threads[i], 0);
    atomic_store(&look, 0);
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
    const pid_t thread = (pid_t)real(SYS_gettid);
    for (int i = 0; i < kPlaces; ++i) {
        pid_t nobody = 0;
        if (!atomic_compare_exchange_strong(&widened_threads[i], &nobody, thread)) continue;
        const uint32_t seen = atomic_load(&look);
        const struct timespec rest = {.tv_nsec = kRestNs};
        for (int rests = 0; seen % 2 != 0 && atomic_load(&look) == seen && rests < kMostRests; ++rests)
            real(SYS_nanosleep, &rest, NULL);
        return &widened_threads[i];
    }
    return NULL;
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

/* A thread took its mask from a grant that the helper thread may never see. */
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

/* A thread that is cancelled while it is widened has left its place. */
static void give_places_back(void) {
    REAL(syscall)
    const pid_t thread = (pid_t)real(SYS_gettid);
    for (int i = 0; i < kPlaces; ++i)
        if ((atomic_load(&widened_threads[i]) & ~kPassedOver) == thread) atomic_store(&widened_threads[i], 0);
}

void affinity_forget_choice(void) {
    give_places_back();
    if (chosen_here.is) atomic_fetch_sub(&have_chosen, 1);
    chosen_here.is = false;
}

void affinity_forget_in_child(void) {
    atomic_store(&have_chosen, chosen_here.is ? 1 : 0);
    affinity_ends();
}

bool affinity_is_chosen(void) {
    return chosen_here.is;
}

/* Binds the calling thread to the grant; to `otherwise`, or as it is, where that has no CPU or cannot be
 * read. */
static void follow_grant(const cpu_set_t* otherwise) {
    struct link_grant grant;
    do {
        if (!link_read_grant(&grant)) grant.epoch = grant.count = 0;
        if (grant.count > 0)
            followed_here = (struct mask_here){affinity_set(0, &grant.cpus), grant.cpus};
        else if (otherwise != NULL)
            affinity_set(0, otherwise);
        note_follows(grant.epoch);
    } while (affinity_epoch() != grant.epoch); /* else it may stay where the helper thread has just left */
    if (!link_managed()) affinity_set(0, link_allowed());
}

void affinity_follow_since(uint32_t epoch) {
    if (!link_managed() || link_mode() == HEDDLE_MODE_THREADS || affinity_epoch() == epoch) return;
    follow_grant(NULL);
}

bool affinity_set(pid_t thread, const cpu_set_t* cpus) {
    REAL(syscall) /* our own wrapper would put the grant in the place of the program's mask */
    return real(SYS_sched_setaffinity, thread, sizeof *cpus, cpus) == 0;
}

/* The calling thread is not where the program would have it: it was bound by the helper thread; by the
 * arbiter, for want of an answer; by itself, before the helper has seen the grant; or is as before, since it
 * was passed over as all were let go. One that has chosen its mask, and has another, has been bound or let go
 * by us. */
static bool is_bound(const cpu_set_t* now, const _Atomic pid_t* place) {
    cpu_set_t cpus;
    return chosen_here.is || follow_is_bound() || granted(&cpus) ||
           (followed_here.is && CPU_EQUAL(&followed_here.mask, now)) ||
           (place != NULL && (*place & kPassedOver) != 0);
}

struct affinity_widened affinity_widen(void) {
    REAL(syscall) /* our own wrapper would tell the program's own mask */
    struct affinity_widened widened = {.is = false};
    if (!link_managed() || link_mode() == HEDDLE_MODE_THREADS) return widened;
    const int result = errno;
    /* A forked child has no link: this one shares its parent's memory, and may have its mask from before the
     * parent was let go. */
    const bool by_vfork = getpid() != atomic_load(&process);
    if (!by_vfork) widened.place = take_place();
    const cpu_set_t* const own = chosen_here.is ? &chosen_here.mask : link_allowed();
    CPU_ZERO(&widened.before);
    if (real(SYS_sched_getaffinity, 0, sizeof widened.before, &widened.before) > 0 &&
        (is_bound(&widened.before, widened.place) || (by_vfork && !atomic_load(&has_bound_others))) &&
        !CPU_EQUAL(&widened.before, own))
        widened.is = affinity_set(0, own);
    errno = result;
    return widened;
}

void affinity_narrow(const struct affinity_widened* widened) {
    const bool passed_over =
        widened->place != NULL && (atomic_exchange(widened->place, 0) & kPassedOver) != 0;
    if ((!widened->is && !passed_over) || !link_managed()) return;
    const int result = errno;
    follow_grant(widened->is ? &widened->before : NULL);
    errno = result;
}

/* Of the calling thread, which forks. */
static __thread struct affinity_widened fork_widened;

void affinity_before_fork(void) {
    fork_widened = affinity_widen();
}

void affinity_after_fork(void) {
    affinity_narrow(&fork_widened);
}

bool affinity_is_widened_by_fork(void) {
    return fork_widened.is;
}

static bool has_own_masks(void) {
    return atomic_load(&has_bound_others) || atomic_load(&have_chosen) > 0;
}

void affinity_hide_grant(cpu_set_t* mask, size_t bytes) {
    if (!link_managed() || link_mode() == HEDDLE_MODE_THREADS || has_own_masks()) return;
    memcpy(mask, link_allowed(), bytes < sizeof(cpu_set_t) ? bytes : sizeof(cpu_set_t));
}

/* The way back: the grant in the place of the program's own mask. */
static void apply_grant(cpu_set_t* mask, size_t bytes) {
    cpu_set_t cpus;
    if (memcmp(mask, link_allowed(), bytes) == 0 && granted(&cpus)) memcpy(mask, &cpus, bytes);
}

/* A thread was bound to `got`, where the program wanted `wanted`; by itself, or by another one. */
static void note_choice(const cpu_set_t* wanted, size_t bytes, const cpu_set_t* got, bool by_itself) {
    const bool chosen = memcmp(wanted, link_allowed(), bytes) != 0;
    if (!by_itself) {
        if (chosen) atomic_store(&has_bound_others, true);
        return;
    }
    if (chosen != chosen_here.is) atomic_fetch_add(&have_chosen, chosen ? 1 : -1);
    chosen_here.is = chosen;
    chosen_here.mask = *got;
}

HEDDLE_EXPORT int sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t* mask) {
    REAL(sched_getaffinity)
    const int failure = real(thread, bytes, mask);
    if (failure == 0 && affinity_concerns(thread)) affinity_hide_grant(mask, bytes);
    return failure;
}

HEDDLE_EXPORT int pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t* mask) {
    REAL(pthread_getaffinity_np)
    const int failure = real(thread, bytes, mask);
    if (failure == 0) affinity_hide_grant(mask, bytes);
    return failure;
}

/* A thread that puts back the mask it has read gets the grant. Any other mask is the program's own will.
 * `mask` has `bytes` bytes, which are no more than a cpu_set_t has. */
#define WITHIN_GRANT(call, is_caller)                             \
    cpu_set_t own;                                                \
    int failure;                                                  \
    bool follows;                                                 \
    uint32_t epoch;                                               \
    do {                                                          \
        epoch = affinity_epoch();                                 \
        CPU_ZERO(&own);                                           \
        memcpy(&own, mask, bytes);                                \
        apply_grant(&own, bytes);                                 \
        failure = (int)call;                                      \
        follows = failure == 0 && memcmp(&own, mask, bytes) != 0; \
        if (follows) note_follows(epoch);                         \
    } while (follows && affinity_epoch() != epoch);               \
    if (failure == 0) note_choice(mask, bytes, &own, is_caller);  \
    return failure;

static bool is_ours_to_set(pid_t thread, size_t bytes, const cpu_set_t* mask) {
    return bytes <= sizeof(cpu_set_t) && link_managed() && mask != NULL && affinity_concerns(thread);
}

HEDDLE_EXPORT int sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t* mask) {
    REAL(sched_setaffinity)
    if (!is_ours_to_set(thread, bytes, mask)) return real(thread, bytes, mask);
    WITHIN_GRANT(real(thread, bytes, &own), thread == 0 || thread == gettid())
}

/* Older runtimes ask with no mask at all whether there is such a call. */
long affinity_set_by_number(pid_t thread, size_t bytes, const cpu_set_t* mask) {
    REAL(syscall)
    if (!is_ours_to_set(thread, bytes, mask)) return real(SYS_sched_setaffinity, thread, bytes, mask);
    WITHIN_GRANT(real(SYS_sched_setaffinity, thread, bytes, &own), thread == 0 || thread == gettid())
}

HEDDLE_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t* mask) {
    REAL(pthread_setaffinity_np)
    if (bytes > sizeof(cpu_set_t) || !link_managed()) return real(thread, bytes, mask);
    WITHIN_GRANT(real(thread, bytes, &own), pthread_equal(thread, pthread_self()) != 0)
}

/* A program that this process becomes or starts inherits the mask of the calling thread. */
#define WIDENED(call)                                         \
    const struct affinity_widened widened = affinity_widen(); \
    const __typeof__(call) result = call;                     \
    affinity_narrow(&widened);                                \
    return result

HEDDLE_EXPORT int execve(const char* path, char* const words[], char* const environment[]) {
    REAL(execve)
    WIDENED(real(path, words, environment));
}

HEDDLE_EXPORT int execveat(int folder, const char* path, char* const words[], char* const environment[],
                           int flags) {
    REAL(execveat)
    WIDENED(real(folder, path, words, environment, flags));
}

HEDDLE_EXPORT int execv(const char* path, char* const words[]) {
    REAL(execv)
    WIDENED(real(path, words));
}

HEDDLE_EXPORT int execvp(const char* file, char* const words[]) {
    REAL(execvp)
    WIDENED(real(file, words));
}

HEDDLE_EXPORT int execvpe(const char* file, char* const words[], char* const environment[]) {
    REAL(execvpe)
    WIDENED(real(file, words, environment));
}

HEDDLE_EXPORT int fexecve(int file, char* const words[], char* const environment[]) {
    REAL(fexecve)
    WIDENED(real(file, words, environment));
}

/* The forms with their words as arguments, on the forms with a list. The array lives on the stack, because
 * the caller may be a child of vfork. */
#define LISTED_WORDS(first, last)                                       \
    va_list rest;                                                       \
    size_t count = 1;                                                   \
    va_start(rest, first);                                              \
    while (va_arg(rest, char*) != NULL) ++count;                        \
    va_end(rest);                                                       \
    char* words[count + 1];                                             \
    words[0] = (char*)(size_t)first;                                    \
    va_start(rest, first);                                              \
    for (size_t i = 1; i <= count; ++i) words[i] = va_arg(rest, char*); \
    last va_end(rest);

HEDDLE_EXPORT int execl(const char* path, const char* first, ...) {
    LISTED_WORDS(first, )
    return execv(path, words);
}

HEDDLE_EXPORT int execlp(const char* file, const char* first, ...) {
    LISTED_WORDS(first, )
    return execvp(file, words);
}

HEDDLE_EXPORT int execle(const char* path, const char* first, ...) {
    LISTED_WORDS(first, char* const* environment = va_arg(rest, char* const*);)
    return execve(path, words, environment);
}

HEDDLE_EXPORT int posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
                              const posix_spawnattr_t* attributes, char* const words[],
                              char* const environment[]) {
    REAL(posix_spawn)
    WIDENED(real(child, path, actions, attributes, words, environment));
}

HEDDLE_EXPORT int posix_spawnp(pid_t* child, const char* file, const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes, char* const words[],
                               char* const environment[]) {
    REAL(posix_spawnp)
    WIDENED(real(child, file, actions, attributes, words, environment));
}

HEDDLE_EXPORT int system(const char* command) {
    REAL(system)
    const bool counted = waiting_begin(false);
    const struct affinity_widened widened = affinity_widen();
    const int result = real(command);
    affinity_narrow(&widened);
    waiting_end(counted);
    return result;
}

HEDDLE_EXPORT FILE* popen(const char* command, const char* type) {
    REAL(popen)
    WIDENED(real(command, type));
}
