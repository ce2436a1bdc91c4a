/* Blocking calls of libc: a thread that sleeps or waits in one of them needs no CPU, and the arbiter may give
 * it away. Each wrapper takes one from the process's demand and adds it again when the call returns.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "affinity.h"
#include "callers.h"
#include "credentials.h"
#include "export.h"
#include "last_thread.h"
#include "link.h"
#include "real.h"
#include "sandbox.h"
#include "waiting.h"

enum { kLongWaitNs = 1000000 };

static bool is_long(const struct timespec* duration) {
    return duration == NULL || duration->tv_sec > 0 || duration->tv_nsec >= kLongWaitNs;
}

#define WAITING(long_wait, call)                   \
    const bool counted = waiting_begin(long_wait); \
    const __typeof__(call) result = call;          \
    waiting_end(counted);                          \
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

/* LLVM's OpenMP sleeps in these two between its regions, in threads that none announced. */
HEDDLE_EXPORT int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
    REAL_VERSION(pthread_cond_wait, "GLIBC_2.3.2")
    if (callers_are_libomp(__builtin_return_address(0))) return real(condition, mutex);
    WAITING(false, real(condition, mutex));
}

HEDDLE_EXPORT int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                         const struct timespec* until) {
    REAL_VERSION(pthread_cond_timedwait, "GLIBC_2.3.2")
    if (callers_are_libomp(__builtin_return_address(0))) return real(condition, mutex, until);
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

HEDDLE_EXPORT int ppoll(struct pollfd* descriptors, nfds_t count, const struct timespec* timeout,
                        const sigset_t* signals) {
    REAL(ppoll)
    if (timeout != NULL && timeout->tv_sec == 0 && timeout->tv_nsec == 0)
        return real(descriptors, count, timeout, signals);
    WAITING(false, real(descriptors, count, timeout, signals));
}

HEDDLE_EXPORT int pselect(int count, fd_set* reading, fd_set* writing, fd_set* failing,
                          const struct timespec* timeout, const sigset_t* signals) {
    REAL(pselect)
    if (timeout != NULL && timeout->tv_sec == 0 && timeout->tv_nsec == 0)
        return real(count, reading, writing, failing, timeout, signals);
    WAITING(false, real(count, reading, writing, failing, timeout, signals));
}

HEDDLE_EXPORT int epoll_pwait(int descriptor, struct epoll_event* events, int count, int timeout_ms,
                              const sigset_t* signals) {
    REAL(epoll_pwait)
    if (timeout_ms == 0) return real(descriptor, events, count, timeout_ms, signals);
    WAITING(false, real(descriptor, events, count, timeout_ms, signals));
}

/* Reading counts as waiting whatever is read: where the data is there, the demand is one less for the length
 * of the call, which nobody looks at. */
HEDDLE_EXPORT ssize_t read(int descriptor, void* bytes, size_t count) {
    REAL(read)
    WAITING(false, real(descriptor, bytes, count));
}

HEDDLE_EXPORT ssize_t recv(int descriptor, void* bytes, size_t count, int flags) {
    REAL(recv)
    if ((flags & MSG_DONTWAIT) != 0) return real(descriptor, bytes, count, flags);
    WAITING(false, real(descriptor, bytes, count, flags));
}

HEDDLE_EXPORT ssize_t recvfrom(int descriptor, void* bytes, size_t count, int flags, struct sockaddr* from,
                               socklen_t* from_bytes) {
    REAL(recvfrom)
    if ((flags & MSG_DONTWAIT) != 0) return real(descriptor, bytes, count, flags, from, from_bytes);
    WAITING(false, real(descriptor, bytes, count, flags, from, from_bytes));
}

HEDDLE_EXPORT ssize_t recvmsg(int descriptor, struct msghdr* message, int flags) {
    REAL(recvmsg)
    if ((flags & MSG_DONTWAIT) != 0) return real(descriptor, message, flags);
    WAITING(false, real(descriptor, message, flags));
}

HEDDLE_EXPORT int accept(int descriptor, struct sockaddr* peer, socklen_t* peer_bytes) {
    REAL(accept)
    WAITING(false, real(descriptor, peer, peer_bytes));
}

HEDDLE_EXPORT int accept4(int descriptor, struct sockaddr* peer, socklen_t* peer_bytes, int flags) {
    REAL(accept4)
    WAITING(false, real(descriptor, peer, peer_bytes, flags));
}

HEDDLE_EXPORT pid_t wait3(int* status, int options, struct rusage* usage) {
    REAL(wait3)
    if ((options & WNOHANG) != 0) return real(status, options, usage);
    WAITING(false, real(status, options, usage));
}

HEDDLE_EXPORT pid_t wait4(pid_t child, int* status, int options, struct rusage* usage) {
    REAL(wait4)
    if ((options & WNOHANG) != 0) return real(child, status, options, usage);
    WAITING(false, real(child, status, options, usage));
}

HEDDLE_EXPORT int waitid(idtype_t kind, id_t child, siginfo_t* information, int options) {
    REAL(waitid)
    if ((options & WNOHANG) != 0) return real(kind, child, information, options);
    WAITING(false, real(kind, child, information, options));
}

HEDDLE_EXPORT int pause(void) {
    REAL(pause)
    WAITING(true, real());
}

HEDDLE_EXPORT int sigsuspend(const sigset_t* signals) {
    REAL(sigsuspend)
    WAITING(true, real(signals));
}

HEDDLE_EXPORT int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                         const struct timespec* until) {
    REAL(pthread_cond_clockwait)
    WAITING(false, real(condition, mutex, clock, until));
}

HEDDLE_EXPORT int pthread_barrier_wait(pthread_barrier_t* barrier) {
    REAL(pthread_barrier_wait)
    WAITING(false, real(barrier));
}

HEDDLE_EXPORT int sem_timedwait(sem_t* semaphore, const struct timespec* until) {
    REAL(sem_timedwait)
    WAITING(false, real(semaphore, until));
}

HEDDLE_EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const struct timespec* until) {
    REAL(sem_clockwait)
    WAITING(false, real(semaphore, clock, until));
}

/* Runtimes that bring their own locks wait here: oneTBB, the C++ library's atomics; libomp asks for its
 * affinity here. */
HEDDLE_EXPORT long syscall(long number, ...) {
    REAL(syscall)
    va_list rest;
    va_start(rest, number);
    const long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long);
    const long d = va_arg(rest, long), e = va_arg(rest, long), f = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_futex) {
        const int operation = (int)b & FUTEX_CMD_MASK;
        if (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) {
            WAITING(false, real(number, a, b, c, d, e, f));
        }
    }
    if (number == SYS_sched_setaffinity)
        return affinity_set_by_program((pid_t)a, (size_t)b, (const cpu_set_t*)c);
    if (number == SYS_exit) last_thread_leaves();
    if (number == SYS_seccomp || number == SYS_prctl) sandbox_look_at(number, a, b, c);
    credentials_look_at(number, a);
    const long result = real(number, a, b, c, d, e, f);
    if (number == SYS_sched_getaffinity && result > 0 && affinity_concerns((pid_t)a))
        affinity_hide_grant((pid_t)a, (cpu_set_t*)c, (size_t)result);
    return result;
}
