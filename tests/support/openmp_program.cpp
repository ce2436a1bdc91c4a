// openmp_program PROGRESS: parallel regions, one after the other, until the test says stop in PROGRESS. Exit
// code 0 where every region was run by every one of its threads.
#include <omp.h>
#include <sys/prctl.h>

#include <csignal>

#include "support/progress.hpp"

int main(int argc, char** argv) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    heddle::test::Progress* progress = argc == 2 ? heddle::test::map_progress(argv[1]) : nullptr;
    if (progress == nullptr) return 2;
    while (progress->stop.load(std::memory_order_relaxed) == 0) {
        int threads = 0;
        int came = 0;
#pragma omp parallel reduction(+ : came)
        {
#pragma omp single
            threads = omp_get_num_threads();
            for (volatile int i = 0; i < 20'000;) i = i + 1;
            ++came;
        }
        if (came != threads) return 1;
        progress->rounds.fetch_add(1, std::memory_order_relaxed);
    }
    return 0;
}
