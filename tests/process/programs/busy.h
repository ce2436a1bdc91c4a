/* Work that takes as long as it is told to, for the programs of this folder. */
#ifndef HEDDLE_TEST_PROGRAMS_BUSY_H
#define HEDDLE_TEST_PROGRAMS_BUSY_H

#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void work(double seconds) {
    for (const double end = now() + seconds; now() < end;) {
    }
}

#endif
