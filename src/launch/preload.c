/* libheddle-launch.so: what `heddle run` loads into an unmodified program (LD_PRELOAD).
 *
 * Without an arbiter it does nothing. It changes no signal handler, prints nothing but the one line that says
 * why a program is unmanaged, and starts one thread, which sleeps until the program's CPUs change.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "follow.h"
#include "libgomp.h"
#include "link.h"

static void forget_in_child(void) {
    if (!link_managed()) return;
    link_forget_in_child();
    follow_forget_in_child();
    libgomp_forget_in_child();
    if (link_open() == 0) follow_start();
}

__attribute__((constructor)) static void begin(void) {
    const char* arbiter = getenv("HEDDLE_ARBITER");
    if (arbiter == NULL || *arbiter != '/') return;
    const int failure = link_open();
    if (failure != 0) {
        fprintf(stderr, "heddle: %s runs unmanaged: no arbiter at %s: %s\n", program_invocation_short_name,
                arbiter, strerror(failure));
        return;
    }
    follow_start();
    pthread_atfork(NULL, NULL, forget_in_child);
}
