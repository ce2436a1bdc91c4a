// threadprivate: data of the threads that has to last from region to region, whatever the grant does.
// Exit code 0 where every thread found its own.
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

static int mine;
#pragma omp threadprivate(mine)

int main(void) {
    int threads = 0;
    int lost = 0;
#pragma omp parallel
    {
        mine = 1000 + omp_get_thread_num();
#pragma omp single
        threads = omp_get_num_threads();
    }
    for (int round = 0; round < 200; ++round) {
        usleep(500);
#pragma omp parallel reduction(+ : lost)
        {
            if (mine != 1000 + omp_get_thread_num() || omp_get_num_threads() != threads) ++lost;
        }
    }
    mine = 5;
#pragma omp parallel copyin(mine) reduction(+ : lost)
    if (mine != 5) ++lost;
    printf("threads %d lost %d\n", threads, lost);
    return lost == 0 ? 0 : 1;
}
