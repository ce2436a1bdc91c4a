// barriers: OpenMP threads that meet at a barrier after every few microseconds of work.
//
// --regions parallel regions one after the other, each of --rounds rounds of --round-us microseconds of work,
// divided over the threads, and a barrier. One region of many rounds is the long region, which nobody can
// shrink once it runs; many regions of 50 rounds of 20 us are the regions of 1 ms.
#include <omp.h>

#include "work.h"

int main(int argc, char** argv) {
    uint64_t regions = 1;
    uint64_t rounds = 1000;
    uint64_t round_us = 20;
    struct Work work;
    const struct Option own[] = {{"--regions", &regions}, {"--rounds", &rounds}, {"--round-us", &round_us}};
    read_options(argc, argv, &work, own, 3);

    const uint64_t round = round_us * work.iterations_per_us;
    const uint64_t start = pass_gate(&work);
    for (uint64_t region = 0; region < regions; ++region) {
#pragma omp parallel
        {
            const uint64_t share = round / (uint64_t)omp_get_num_threads();
            for (uint64_t i = 0; i < rounds; ++i) {
                compute(share);
#pragma omp barrier
            }
        }
    }
    report(omp_get_max_threads(), start);
    return 0;
}
