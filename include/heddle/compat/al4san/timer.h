/* AL4SAN's clock. */
#ifndef HEDDLE_COMPAT_AL4SAN_TIMER_H
#define HEDDLE_COMPAT_AL4SAN_TIMER_H

#include <stddef.h>
#include <sys/time.h>

/** Seconds; differences count. */
static inline double AL4SAN_timer(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return (double)now.tv_sec + 1e-6 * (double)now.tv_usec;
}

#endif
