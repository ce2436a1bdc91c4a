// entries: calls each of libgomp's entries that open a region by its own name, as objects of old and new
// compilers do, and prints "NAME threads N work W": how many threads it ran on, and how much of the work was
// done.
#include <omp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

enum { kIterations = 100, kSections = 5 };

typedef void (*region_function)(void*);
void GOMP_parallel(region_function, void*, unsigned, unsigned);
unsigned GOMP_parallel_reductions(region_function, void*, unsigned, unsigned);
void GOMP_parallel_sections(region_function, void*, unsigned, unsigned, unsigned);
void GOMP_parallel_start(region_function, void*, unsigned);
void GOMP_parallel_end(void);
void GOMP_parallel_sections_start(region_function, void*, unsigned, unsigned);
void GOMP_teams_reg(region_function, void*, unsigned, unsigned, unsigned);
unsigned GOMP_sections_next(void);
void GOMP_sections_end_nowait(void);
void GOMP_loop_end_nowait(void);

#define CHUNKED(kind) \
    void GOMP_parallel_loop_##kind(region_function, void*, unsigned, long, long, long, long, unsigned)
#define PLAIN(kind) \
    void GOMP_parallel_loop_##kind(region_function, void*, unsigned, long, long, long, unsigned)
#define CHUNKED_START(kind) \
    void GOMP_parallel_loop_##kind##_start(region_function, void*, unsigned, long, long, long, long)
#define NEXT(kind) bool GOMP_loop_##kind##_next(long*, long*)
CHUNKED(static);
CHUNKED(dynamic);
CHUNKED(guided);
CHUNKED(nonmonotonic_dynamic);
CHUNKED(nonmonotonic_guided);
PLAIN(runtime);
PLAIN(nonmonotonic_runtime);
PLAIN(maybe_nonmonotonic_runtime);
CHUNKED_START(static);
CHUNKED_START(dynamic);
CHUNKED_START(guided);
void GOMP_parallel_loop_runtime_start(region_function, void*, unsigned, long, long, long);
NEXT(static);
NEXT(dynamic);
NEXT(guided);
NEXT(runtime);
NEXT(nonmonotonic_dynamic);
NEXT(nonmonotonic_guided);
NEXT(nonmonotonic_runtime);
NEXT(maybe_nonmonotonic_runtime);

static atomic_int threads;
static atomic_int work;
static bool (*next)(long*, long*);

static void note_threads(void) {
    threads = omp_get_num_threads();
}

static void plain_region(void* data) {
    (void)data;
    note_threads();
    ++work;
}

static void sections_region(void* data) {
    (void)data;
    note_threads();
    while (GOMP_sections_next() != 0) ++work;
    GOMP_sections_end_nowait();
}

static void loop_region(void* data) {
    (void)data;
    note_threads();
    long from, to;
    while (next(&from, &to)) work += (int)(to - from);
    GOMP_loop_end_nowait();
}

static void teams_region(void* data) {
    (void)data;
    threads = omp_get_num_teams();
    ++work;
}

static void report(const char* name) {
    printf("%s threads %d work %d\n", name, threads, work);
    threads = work = 0;
}

// The region's number of threads is the team's: the work of a plain region is one for each.
static void report_plain(const char* name) {
    printf("%s threads %d work %s\n", name, threads, work == threads ? "all" : "lost");
    threads = work = 0;
}

#define LOOP(kind, ...)                                                                \
    next = GOMP_loop_##kind##_next;                                                    \
    GOMP_parallel_loop_##kind(loop_region, NULL, 0, 0, kIterations, 1, ##__VA_ARGS__); \
    report("GOMP_parallel_loop_" #kind)
#define LOOP_START(kind, ...)                                                                  \
    next = GOMP_loop_##kind##_next;                                                            \
    GOMP_parallel_loop_##kind##_start(loop_region, NULL, 0, 0, kIterations, 1, ##__VA_ARGS__); \
    loop_region(NULL);                                                                         \
    GOMP_parallel_end();                                                                       \
    report("GOMP_parallel_loop_" #kind "_start")

int main(void) {
    GOMP_parallel(plain_region, NULL, 0, 0);
    report_plain("GOMP_parallel");
    GOMP_parallel_start(plain_region, NULL, 0);
    plain_region(NULL);
    GOMP_parallel_end();
    report_plain("GOMP_parallel_start");
    GOMP_parallel_sections(sections_region, NULL, 0, kSections, 0);
    report("GOMP_parallel_sections");
    GOMP_parallel_sections_start(sections_region, NULL, 0, kSections);
    sections_region(NULL);
    GOMP_parallel_end();
    report("GOMP_parallel_sections_start");
    LOOP(static, 7, 0);
    LOOP(dynamic, 7, 0);
    LOOP(guided, 7, 0);
    LOOP(nonmonotonic_dynamic, 7, 0);
    LOOP(nonmonotonic_guided, 7, 0);
    LOOP(runtime, 0);
    LOOP(nonmonotonic_runtime, 0);
    LOOP(maybe_nonmonotonic_runtime, 0);
    LOOP_START(static, 7);
    LOOP_START(dynamic, 7);
    LOOP_START(guided, 7);
    LOOP_START(runtime);
    GOMP_teams_reg(teams_region, NULL, 3, 1, 0);
    report("GOMP_teams_reg");
    /* The compiler calls GOMP_parallel_reductions for this. */
    int sum = 0;
#pragma omp parallel reduction(task, + : sum)
    {
        note_threads();
#pragma omp single
        for (int i = 0; i < kIterations; ++i) {
#pragma omp task in_reduction(+ : sum)
            ++sum;
        }
    }
    work = sum;
    report("GOMP_parallel_reductions");
    return 0;
}
