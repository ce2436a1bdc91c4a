/* A library whose constructor waits for a thread that opens a region. */
#include <omp.h>
#include <pthread.h>

static void* compute(void* sum) {
    int all = 0;
#pragma omp parallel reduction(+ : all)
    all += 1;
    *(int*)sum = all + omp_get_max_threads();
    return NULL;
}

__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    static int sum;
    if (pthread_create(&thread, NULL, compute, &sum) == 0) pthread_join(thread, NULL);
}
