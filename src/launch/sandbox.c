/* Programs that forbid themselves, and what they start, most system calls: ours would be among those, and end
 * them. man-db does so with the programs that it formats pages by. They run unmanaged from then on.
 */
#define _GNU_SOURCE
#include "sandbox.h"

#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "credentials.h"
#include "export.h"
#include "process.h"
#include "real.h"

/* Calls that cannot succeed ask what there is. */
static bool forbids(long number, long first, long second, long third) {
    if (number == SYS_seccomp)
        return (first == SECCOMP_SET_MODE_FILTER && third != 0) ||
               (first == SECCOMP_SET_MODE_STRICT && second == 0 && third == 0);
    return number == SYS_prctl && first == PR_SET_SECCOMP &&
           (second == SECCOMP_MODE_STRICT || (second == SECCOMP_MODE_FILTER && third != 0));
}

void sandbox_look_at(long number, long first, long second, long third) {
    if (forbids(number, first, second, third)) process_renounce();
}

HEDDLE_EXPORT int prctl(int option, ...) {
    REAL(prctl)
    va_list rest;
    va_start(rest, option);
    const unsigned long a = va_arg(rest, unsigned long), b = va_arg(rest, unsigned long);
    const unsigned long c = va_arg(rest, unsigned long), d = va_arg(rest, unsigned long);
    va_end(rest);
    sandbox_look_at(SYS_prctl, option, (long)a, (long)b);
    credentials_look_at(SYS_prctl, option);
    return real(option, a, b, c, d);
}
