/* A library with a parallel region; one with 1 and one with 2 for VALUE. */
int sum(void);
int sum(void) {
    int all = 0;
#pragma omp parallel for reduction(+ : all)
    for (int i = 0; i < 100; ++i) all += VALUE;
    return all;
}
