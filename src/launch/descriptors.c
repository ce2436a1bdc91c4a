/* Programs that close every descriptor they do not know: ours is not theirs to close.
 *
 * To them it looks as if it were not open, and where they want its number for a file of theirs it goes
 * elsewhere. A program that closes it by a system call of its own is noticed before the number is used again
 * (own_socket in link.c), and registers anew.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <unistd.h>

#include "export.h"
#include "link.h"
#include "real.h"

static bool is_ours(int descriptor) {
    return descriptor >= 0 && descriptor == link_descriptor();
}

static int not_open(void) {
    errno = EBADF;
    return -1;
}

HEDDLE_EXPORT int close(int descriptor) {
    REAL(close)
    return is_ours(descriptor) ? not_open() : real(descriptor);
}

HEDDLE_EXPORT int dup2(int from, int to) {
    REAL(dup2)
    if (is_ours(from)) return not_open();
    if (is_ours(to)) link_make_way();
    return real(from, to);
}

HEDDLE_EXPORT int dup3(int from, int to, int flags) {
    REAL(dup3)
    if (is_ours(from)) return not_open();
    if (is_ours(to)) link_make_way();
    return real(from, to, flags);
}

/* Shells ask so whether a number is in use. */
HEDDLE_EXPORT int fcntl(int descriptor, int command, ...) {
    REAL(fcntl)
    if (is_ours(descriptor)) return not_open();
    va_list rest;
    va_start(rest, command);
    void* const argument = va_arg(rest, void*);
    va_end(rest);
    return real(descriptor, command, argument);
}

/* The same where an off_t has 64 bits anyway. */
HEDDLE_EXPORT int fcntl64(int descriptor, int command, ...) __attribute__((alias("fcntl")));

HEDDLE_EXPORT int close_range(unsigned first, unsigned last, int flags) {
    REAL(close_range)
    const int ours = link_descriptor();
    if (ours < 0 || (unsigned)ours < first || (unsigned)ours > last) return real(first, last, flags);
    int failure = 0;
    if (first < (unsigned)ours) failure = real(first, (unsigned)ours - 1, flags);
    if (failure == 0 && (unsigned)ours < last) failure = real((unsigned)ours + 1, last, flags);
    return failure;
}

HEDDLE_EXPORT void closefrom(int first) {
    REAL(closefrom)
    if (close_range(first < 0 ? 0 : (unsigned)first, ~0u, 0) == 0) return;
    real(first); /* Linux before 5.9: it goes through /proc, and ours with the rest */
}
