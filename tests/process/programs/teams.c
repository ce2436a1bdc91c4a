// teams: four kinds of regions, ten times each, and how many threads each time: "loop N N ...", whose threads
// work for 30 ms on end, "apart", the same without being a loop, "meeting", where they meet all the time, and
// "short", which end at once.
#include <omp.h>
#include <stdio.h>

#include "busy.h"

enum { kTimes = 10 };

static int loop(void) {
    int team = 0;
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 64; ++i) {
        if (i == 0) team = omp_get_num_threads();
        work(0.03 / 16);
    }
    return team;
}

static int apart(void) {
    int team = 0;
#pragma omp parallel
    {
        if (omp_get_thread_num() == 0) team = omp_get_num_threads();
        work(0.03);
    }
    return team;
}

static int meeting(void) {
    int team = 0;
    int on = 1;
    const double end = now() + 0.03;
#pragma omp parallel
    while (on) {
        if (omp_get_thread_num() == 0) team = omp_get_num_threads();
        for (int i = 0; i < 100; ++i) {
#pragma omp barrier
        }
        if (omp_get_thread_num() == 0) on = now() < end;
#pragma omp barrier
    }
    return team;
}

static int of_no_time(void) {
    int team = 0;
#pragma omp parallel
    if (omp_get_thread_num() == 0) team = omp_get_num_threads();
    return team;
}

static void tell(const char* name, int (*region)(void)) {
    printf("%s", name);
    for (int i = 0; i < kTimes; ++i) printf(" %d", region());
    puts("");
}

int main(void) {
    tell("loop", loop);
    tell("apart", apart);
    tell("meeting", meeting);
    tell("short", of_no_time);
    return 0;
}
