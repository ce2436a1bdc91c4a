// phases: a program that needs one core, or none, in every other phase.
//
// --phases phases, alternately --alone-us microseconds of serial work (--blocked 1: of sleep) and a parallel
// one: --regions regions of --chunks chunks of --chunk-us microseconds, handed out dynamically.
// --parallel-first 1 begins with a parallel phase, so that two such programs can fit into each other.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <omp.h>
#include <time.h>

#include "work.h"

typedef int Announcement(void);

static Announcement* find_announcement(const char* name) {
    Announcement* found = 0;
    *(void**)&found = dlsym(RTLD_DEFAULT, name);
    return found;
}

// DLB sees no sleeping program by itself, so the peer is given the two calls that it documents for this.
static void sleep_us(uint64_t us, Announcement* lend, Announcement* reclaim) {
    struct timespec rest = {.tv_sec = (time_t)(us / 1000000U), .tv_nsec = (long)(us % 1000000U * 1000U)};
    if (lend && reclaim) (void)lend();
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
    if (lend && reclaim) (void)reclaim();
}

static void parallel_phase(uint64_t regions, uint64_t chunks, uint64_t chunk) {
    for (uint64_t region = 0; region < regions; ++region) {
#pragma omp parallel for schedule(dynamic)
        for (uint64_t i = 0; i < chunks; ++i) compute(chunk);
    }
}

int main(int argc, char** argv) {
    uint64_t phases = 20;
    uint64_t alone_us = 40000;
    uint64_t blocked = 0;
    uint64_t regions = 20;
    uint64_t chunks = 20;
    uint64_t chunk_us = 200;
    uint64_t parallel_first = 0;
    struct Work work;
    const struct Option own[] = {{"--phases", &phases},
                                 {"--alone-us", &alone_us},
                                 {"--blocked", &blocked},
                                 {"--regions", &regions},
                                 {"--chunks", &chunks},
                                 {"--chunk-us", &chunk_us},
                                 {"--parallel-first", &parallel_first}};
    read_options(argc, argv, &work, own, 7);

    Announcement* const lend = find_announcement("DLB_Lend");
    Announcement* const reclaim = find_announcement("DLB_Reclaim");
    const uint64_t start = pass_gate(&work);
    for (uint64_t phase = 0; phase < phases; ++phase) {
        if (phase % 2 != parallel_first) {
            parallel_phase(regions, chunks, chunk_us * work.iterations_per_us);
        } else if (blocked != 0) {
            sleep_us(alone_us, lend, reclaim);
        } else {
            compute(alone_us * work.iterations_per_us);
        }
    }
    report(omp_get_max_threads(), start);
    return 0;
}
