/* The C library's calls that read and set masks, and those that start programs, which inherit one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "affinity.h"
#include "export.h"
#include "link.h"
#include "real.h"
#include "waiting.h"

/* 0: the calling one, also in a child of vfork, which the C library takes for its maker. False: it has ended.
 */
static bool number_of(pthread_t thread, pid_t* number) {
    *number = 0;
    return pthread_equal(thread, pthread_self()) != 0 || affinity_number_of(thread, number);
}

HEDDLE_EXPORT int sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t* mask) {
    REAL(sched_getaffinity)
    const int failure = real(thread, bytes, mask);
    if (failure == 0 && affinity_concerns(thread)) affinity_hide_grant(thread, mask, bytes);
    return failure;
}

HEDDLE_EXPORT int pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t* mask) {
    REAL(pthread_getaffinity_np)
    const int failure = real(thread, bytes, mask);
    pid_t number;
    if (failure == 0 && number_of(thread, &number)) affinity_hide_grant(number, mask, bytes);
    return failure;
}

HEDDLE_EXPORT int sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t* mask) {
    return (int)affinity_set_by_program(thread, bytes, mask);
}

HEDDLE_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t* mask) {
    REAL(pthread_setaffinity_np)
    affinity_before_binding();
    pid_t number;
    if (!link_managed() || !number_of(thread, &number)) return real(thread, bytes, mask);
    const int result = errno;
    const int failure = affinity_set_by_program(number, bytes, mask) == 0 ? 0 : errno;
    errno = result;
    return failure;
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
