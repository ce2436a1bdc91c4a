/* Who a process is and what it may do, the system keeps by thread. The C library makes all threads follow
 * where one changes its user or groups, and ends a program in which that succeeds for one and fails for
 * another. So a thread of ours must not have other capabilities than the program's: before these are changed,
 * which concerns the calling thread alone, ours ends. The next one has what its maker has.
 */
#define _GNU_SOURCE
#include "credentials.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "export.h"
#include "link.h"
#include "process.h"
#include "real.h"

struct __user_cap_header_struct;
struct __user_cap_data_struct;
int capset(struct __user_cap_header_struct* header, const struct __user_cap_data_struct* data);

/* By their numbers these, too, are for the calling thread. */
static bool changes(long number, long first) {
    switch (number) {
        case SYS_prctl:
            return first == PR_SET_KEEPCAPS || first == PR_SET_SECUREBITS;
        case SYS_capset:
        case SYS_setuid:
        case SYS_setgid:
        case SYS_setreuid:
        case SYS_setregid:
        case SYS_setresuid:
        case SYS_setresgid:
        case SYS_setgroups:
            return true;
        default:
            return false;
    }
}

void credentials_look_at(long number, long first) {
    if (!changes(number, first) || !link_managed()) return;
    const int result = errno;
    (void)process_leave();
    errno = result;
}

HEDDLE_EXPORT int capset(struct __user_cap_header_struct* header, const struct __user_cap_data_struct* data) {
    REAL(capset)
    credentials_look_at(SYS_capset, 0);
    return real(header, data);
}
