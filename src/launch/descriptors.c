/* Programs that close every descriptor they do not know: ours is not theirs to close.
 *
 * To them it looks as if it were not open. A program that closes it by a system call of its own is noticed
 * before the number is used again (own_socket in link.c), and registers anew.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "export.h"
#include "link.h"
#include "real.h"

HEDDLE_EXPORT int close(int descriptor) {
    REAL(close)
    if (descriptor < 0 || descriptor != link_descriptor()) return real(descriptor);
    errno = EBADF;
    return -1;
}

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
