// wheel: an object with a parallel region. team(n, &number) sets the number of threads, unless n is 0, stores
// the number that its libgomp has set then, and returns how many threads a region had.
#include <omp.h>

int team(int threads, int* number) {
    int seen = 0;
    if (threads > 0) omp_set_num_threads(threads);
    *number = omp_get_max_threads();
#pragma omp parallel
#pragma omp single
    seen = omp_get_num_threads();
    return seen;
}
