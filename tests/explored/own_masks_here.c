/* launch/own_masks.c with so few places that threads meet in them. */
#define _GNU_SOURCE
#include <sched.h>

#include "launch/real.h"

/* All threads live; who rests lets the others go on. */
static long system_here(long number, ...) {
    (void)number;
    return sched_yield();
}
#undef REAL
#define REAL(name) long (*const real)(long, ...) = system_here;
#define HEDDLE_OWN_MASKS 4
#include "launch/own_masks.c"
