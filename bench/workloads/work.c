#define _GNU_SOURCE
#include "work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// One copy for all programs and compilers, so that an iteration costs the same everywhere.
__attribute__((noinline)) void compute(uint64_t iterations) {
    uint64_t x = iterations;
    for (uint64_t i = 0; i < iterations; ++i) {
        x = x * 6364136223846793005U + 1442695040888963407U;
        __asm__ volatile("" : "+r"(x));
    }
}

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

uint64_t calibrate(void) {
    const uint64_t iterations = 4000000;
    uint64_t best_ns = UINT64_MAX;
    for (int attempt = 0; attempt < 15; ++attempt) {
        const uint64_t start = now_ns();
        compute(iterations);
        const uint64_t took = now_ns() - start;
        if (took < best_ns) best_ns = took;
    }
    return iterations * 1000U / best_ns;
}

static int take_option(const char* name, const char* text, const struct Option* options, int count) {
    for (int i = 0; i < count; ++i) {
        if (strcmp(options[i].name, name) != 0) continue;
        char* end = NULL;
        errno = 0;
        const unsigned long long value = strtoull(text, &end, 10);
        if (errno != 0 || end == text || *end != '\0' || *text == '-') return 0;
        *options[i].value = value;
        return 1;
    }
    return 0;
}

void read_options(int argc, char** argv, struct Work* work, const struct Option* own, int count) {
    work->iterations_per_us = 0;
    work->start_at_ns = 0;
    const struct Option common[] = {{"--iterations-per-us", &work->iterations_per_us},
                                    {"--start-at", &work->start_at_ns}};
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc &&
            (take_option(argv[i], argv[i + 1], common, 2) || take_option(argv[i], argv[i + 1], own, count)))
            continue;
        fprintf(stderr, "%s: %s is not an option with a number; there are --iterations-per-us, --start-at",
                argv[0], argv[i]);
        for (int known = 0; known < count; ++known) fprintf(stderr, ", %s", own[known].name);
        fprintf(stderr, "\n");
        exit(2);
    }
    if (work->iterations_per_us == 0) work->iterations_per_us = calibrate();
}

uint64_t pass_gate(const struct Work* work) {
    if (work->start_at_ns != 0) {
        const struct timespec gate = {.tv_sec = (time_t)(work->start_at_ns / 1000000000U),
                                      .tv_nsec = (long)(work->start_at_ns % 1000000000U)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &gate, NULL) == EINTR) {
        }
    }
    return now_ns();
}

void report(int threads, uint64_t start_ns) {
    const uint64_t end_ns = now_ns();
    printf("{\"threads\":%d,\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 ",\"wall_s\":%.6f}\n", threads,
           start_ns, end_ns, (double)(end_ns - start_ns) * 1e-9);
}
