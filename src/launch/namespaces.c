/* What the system allows a process with one thread alone: to go to other namespaces. Programs that do so
 * seldom are what runs there, which registers itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdbool.h>

#include "export.h"
#include "link.h"
#include "process.h"
#include "real.h"

/* True: the failure may be that of a process with several threads, and this one has a single one now. */
static bool leaves_after(int failure) {
    const int why = errno;
    /* EUSERS is the answer of time namespaces. */
    if (failure == 0 || (why != EINVAL && why != EUSERS)) return false;
    const bool left = link_managed() && process_leave();
    errno = why;
    return left;
}

HEDDLE_EXPORT int unshare(int flags) {
    REAL(unshare)
    const int failure = real(flags);
    return leaves_after(failure) ? real(flags) : failure;
}

HEDDLE_EXPORT int setns(int space, int kind) {
    REAL(setns)
    const int failure = real(space, kind);
    return leaves_after(failure) ? real(space, kind) : failure;
}
