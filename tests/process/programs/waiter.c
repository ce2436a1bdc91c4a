// waiter: one long region of two threads; the second waits at a barrier while the first computes for 40 ms,
// again and again. `waiter SECONDS` prints for each wait "burnt N switches S": how much of it the waiting
// thread spent on a CPU, in percent, and how often it slept.
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double seconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static long sleeps(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

int main(int count, char** words) {
    const double end = seconds_of(CLOCK_MONOTONIC) + (count > 1 ? atof(words[1]) : 1);
    int goes_on = 1;
#pragma omp parallel num_threads(2)
    while (goes_on) {
        const double began = seconds_of(CLOCK_MONOTONIC);
        const double used = seconds_of(CLOCK_THREAD_CPUTIME_ID);
        const long slept = sleeps();
        if (omp_get_thread_num() == 0) {
            while (seconds_of(CLOCK_MONOTONIC) < began + 0.04) {
            }
        }
#pragma omp barrier
        if (omp_get_thread_num() == 1) {
            const double waited = seconds_of(CLOCK_MONOTONIC) - began;
            const double burnt = seconds_of(CLOCK_THREAD_CPUTIME_ID) - used;
            printf("burnt %.0f switches %ld\n", 100 * burnt / waited, sleeps() - slept);
            goes_on = seconds_of(CLOCK_MONOTONIC) < end;
        }
#pragma omp barrier
    }
    return 0;
}
