/* Blocking calls of libc: a thread that sleeps or waits in one of them needs no CPU, and the arbiter may give
 * it away.
 *
 * Each wrapper takes one from the process's demand and adds it again when the call returns. A wait that is
 * known to be long is told to the arbiter at once; of the others it learns when it looks (see protocol.h,
 * ClientPage).
 */
#define _GNU_SOURCE
#include "blocking.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "export.h"
#include "libgomp.h"
#include "link.h"

enum { kLongWaitNs = 1000000 };

static void begin_wait(bool is_long) {
    if (link_managed()) link_change_demand(-1, is_long);
}

/* errno is the result of the call that has just ended. */
static void end_wait(void) {
    const int result = errno;
    if (link_managed()) link_change_demand(+1, false);
    errno = result;
}

static bool is_long(const struct timespec* duration) {
    return duration == NULL || duration->tv_sec > 0 || duration->tv_nsec >= kLongWaitNs;
}

/* Resolves the real function once; a program may call before our constructor has run. */
#define REAL(name)                 \
    static __typeof__(&name) real; \
    if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);
/* pthread_cond_* have an older version under the same name, which dlsym would find. */
#define REAL_VERSION(name, version)                                                \
    static __typeof__(&name) real;                                                 \
    if (real == NULL) real = (__typeof__(&name))dlvsym(RTLD_NEXT, #name, version); \
    if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);

#define WAITING(long_wait, call)          \
    begin_wait(long_wait);                \
    const __typeof__(call) result = call; \
    end_wait();                           \
    return result

HEDDLE_EXPORT int nanosleep(const struct timespec* request, struct timespec* remaining) {
    REAL(nanosleep)
    WAITING(is_long(request), real(request, remaining));
}

HEDDLE_EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec* request,
                                  struct timespec* remaining) {
    REAL(clock_nanosleep)
    WAITING((flags & TIMER_ABSTIME) != 0 || is_long(request), real(clock, flags, request, remaining));
}

HEDDLE_EXPORT int usleep(useconds_t microseconds) {
    REAL(usleep)
    WAITING(microseconds >= kLongWaitNs / 1000, real(microseconds));
}

HEDDLE_EXPORT unsigned sleep(unsigned seconds) {
    REAL(sleep)
    WAITING(seconds > 0, real(seconds));
}

HEDDLE_EXPORT int poll(struct pollfd* descriptors, nfds_t count, int timeout_ms) {
    REAL(poll)
    if (timeout_ms == 0) return real(descriptors, count, timeout_ms);
    WAITING(false, real(descriptors, count, timeout_ms));
}

HEDDLE_EXPORT int select(int count, fd_set* reading, fd_set* writing, fd_set* failing,
                         struct timeval* timeout) {
    REAL(select)
    const bool only_sleeps = reading == NULL && writing == NULL && failing == NULL && timeout != NULL;
    WAITING(only_sleeps && (timeout->tv_sec > 0 || timeout->tv_usec >= kLongWaitNs / 1000),
            real(count, reading, writing, failing, timeout));
}

HEDDLE_EXPORT int epoll_wait(int descriptor, struct epoll_event* events, int count, int timeout_ms) {
    REAL(epoll_wait)
    if (timeout_ms == 0) return real(descriptor, events, count, timeout_ms);
    WAITING(false, real(descriptor, events, count, timeout_ms));
}

HEDDLE_EXPORT pid_t waitpid(pid_t child, int* status, int options) {
    REAL(waitpid)
    if ((options & WNOHANG) != 0) return real(child, status, options);
    WAITING(false, real(child, status, options));
}

HEDDLE_EXPORT pid_t wait(int* status) {
    REAL(wait)
    WAITING(false, real(status));
}

HEDDLE_EXPORT int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
    REAL_VERSION(pthread_cond_wait, "GLIBC_2.3.2")
    WAITING(false, real(condition, mutex));
}

HEDDLE_EXPORT int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                         const struct timespec* until) {
    REAL_VERSION(pthread_cond_timedwait, "GLIBC_2.3.2")
    WAITING(false, real(condition, mutex, until));
}

HEDDLE_EXPORT int pthread_join(pthread_t thread, void** value) {
    REAL(pthread_join)
    WAITING(false, real(thread, value));
}

HEDDLE_EXPORT int sem_wait(sem_t* semaphore) {
    REAL(sem_wait)
    WAITING(false, real(semaphore));
}

/* A thread of the program's own counts from its first to its last instruction; libgomp's count by their
 * regions. */
struct start {
    void* (*run)(void*);
    void* argument;
};

static void thread_ended(void* unused) {
    (void)unused;
    if (link_managed()) link_change_demand(-1, false);
}

static void* run_counted(void* data) {
    const struct start start = *(struct start*)data;
    free(data);
    void* result = NULL;
    link_change_demand(+1, false);
    pthread_cleanup_push(thread_ended, NULL);
    result = start.run(start.argument);
    pthread_cleanup_pop(1);
    return result;
}

HEDDLE_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                                 void* argument) {
    REAL(pthread_create)
    if (!link_managed() || libgomp_contains(__builtin_return_address(0)))
        return real(thread, attributes, run, argument);
    struct start* start = malloc(sizeof *start);
    if (start == NULL) return real(thread, attributes, run, argument);
    *start = (struct start){run, argument};
    const int failure = real(thread, attributes, run_counted, start);
    if (failure != 0) free(start);
    return failure;
}

bool blocking_start_uncounted(void* (*run)(void*), void* argument) {
    REAL(pthread_create)
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    const int failure = real(&thread, &attributes, run, argument);
    pthread_attr_destroy(&attributes);
    return failure == 0;
}
