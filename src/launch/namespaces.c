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

static bool may_try_again(int failure) {
    if (failure == 0 || errno != EINVAL) return false;
    const bool left = link_managed() && process_leave();
    errno = EINVAL;
    return left;
}

HEDDLE_EXPORT int unshare(int flags) {
    REAL(unshare)
    const int failure = real(flags);
    return may_try_again(failure) ? real(flags) : failure;
}

HEDDLE_EXPORT int setns(int space, int kind) {
    REAL(setns)
    const int failure = real(space, kind);
    return may_try_again(failure) ? real(space, kind) : failure;
}
