/* The same regions, with OpenMP's calls by the names that Fortran's compilers give them. */
#include <omp.h>

int omp_get_max_threads_(void);
void omp_set_num_threads_(const int* number);

#define omp_get_max_threads omp_get_max_threads_
#define omp_set_num_threads(number) omp_set_num_threads_(&(const int){number})

#include "regions.c" /* NOLINT(bugprone-suspicious-include) */
