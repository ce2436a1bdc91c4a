// regions: parallel regions for a while, and then what was seen: "max M procs P team N N ..." with the sizes
// of teams that occurred. Built against libgomp and against libomp.
//
// regions SECONDS [clause N | set N | fork | serial]: with serial, a second on one thread follows, which
// begins with the word "serial".
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "busy.h"

enum { kMostThreads = 64 };
static int seen[kMostThreads + 1];

static int region(int clause) {
    int team = 0;
    if (clause > 0) {
#pragma omp parallel num_threads(clause)
        {
#pragma omp single
            team = omp_get_num_threads();
            work(0.002);
        }
    } else {
#pragma omp parallel
        {
#pragma omp single
            team = omp_get_num_threads();
            work(0.002);
        }
    }
    return team;
}

int main(int count, char** words) {
    const double end = now() + (count > 1 ? atof(words[1]) : 0.1);
    const char* what = count > 2 ? words[2] : "";
    const int number = count > 3 ? atoi(words[3]) : 0;
    if (strcmp(what, "set") == 0) omp_set_num_threads(number);
    if (strcmp(what, "fork") == 0) {
        const pid_t child = fork();
        if (child != 0) {
            int status;
            waitpid(child, &status, 0);
            return WEXITSTATUS(status);
        }
    }
    const int most = omp_get_max_threads();
    while (now() < end) ++seen[region(strcmp(what, "clause") == 0 ? number : 0)];
    if (strcmp(what, "serial") == 0) {
        puts("serial");
        fflush(stdout);
        work(1);
    }
    printf("max %d then %d procs %d team", most, omp_get_max_threads(), omp_get_num_procs());
    for (int i = 0; i <= kMostThreads; ++i)
        if (seen[i] > 0) printf(" %d", i);
    printf("\n");
    return 0;
}
