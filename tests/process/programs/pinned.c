// pinned: threads that are bound to one CPU each, in four ways, or to none any more, and work. `pinned
// alone`: for half a second; `pinned beside READY`: until one of them has run elsewhere and all are back; the
// file READY says when it can. Says who is not where it should be, or is told of another mask than its own.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "busy.h"

enum { kThreads = 5, kLongest = 20 };
static const char* const ways[kThreads] = {"by itself", "by attributes", "by another", "by its maker",
                                           "no more"};
static cpu_set_t own[kThreads];
static _Atomic pid_t numbers[kThreads];
static _Atomic bool is_told_another[kThreads];
static _Atomic bool ends;

static void stay(int which) {
    numbers[which] = gettid();
    while (!ends) {
        work(0.001);
        cpu_set_t told;
        if (sched_getaffinity(0, sizeof told, &told) != 0 || !CPU_EQUAL(&told, &own[which]))
            is_told_another[which] = true;
    }
}

static void* bound_by_maker(void* unused) {
    stay(3);
    return unused;
}

// Once its maker has bound it.
static void stay_then(int which) {
    numbers[which] = gettid();
    cpu_set_t told;
    do sched_getaffinity(0, sizeof told, &told);
    while (!CPU_EQUAL(&told, &own[which]));
    stay(which);
}

static void* bound_no_more(void* unused) {
    stay_then(4);
    return unused;
}

static void* bound_by_another(void* unused) {
    stay_then(2);
    return unused;
}

static void* bound_by_attributes(void* unused) {
    pthread_t as_this, not_as_this;
    pthread_create(&as_this, NULL, bound_by_maker, NULL);
    pthread_create(&not_as_this, NULL, bound_no_more, NULL);
    pthread_setaffinity_np(not_as_this, sizeof own[4], &own[4]);
    stay(1);
    pthread_join(as_this, NULL);
    pthread_join(not_as_this, NULL);
    return unused;
}

static void* bound_by_itself(void* unused) {
    sched_setaffinity(0, sizeof own[0], &own[0]);
    stay(0);
    return unused;
}

// As the system has it, and not as it is told.
static bool is_there(int which) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)numbers[which]);
    FILE* status = fopen(path, "r");
    cpu_set_t found;
    CPU_ZERO(&found);
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, "Cpus_allowed_list:", 18) != 0) continue;
        char* at = line + 18;
        do {
            const long from = strtol(at, &at, 10), to = *at == '-' ? strtol(at + 1, &at, 10) : from;
            for (long cpu = from; cpu <= to; ++cpu) CPU_SET((size_t)cpu, &found);
        } while (*at++ == ',');
    }
    if (status != NULL) fclose(status);
    return CPU_EQUAL(&found, &own[which]);
}

static bool are_all_there(void) {
    bool all = true;
    for (int i = 0; i < kThreads; ++i) all &= is_there(i);
    return all;
}

int main(int count, char** words) {
    const bool beside = count > 1 && strcmp(words[1], "beside") == 0;
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    own[4] = allowed;
    for (int i = 0, cpu = -1; i < 4; ++i) {
        if (i % 2 == 0 && i > 0) cpu = -1;
        while (!CPU_ISSET(++cpu, &allowed)) continue;
        CPU_ZERO(&own[i]);
        CPU_SET(cpu, &own[i]);
    }
    pthread_t threads[3];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof own[1], &own[1]);
    pthread_create(&threads[0], NULL, bound_by_itself, NULL);
    pthread_create(&threads[1], &attributes, bound_by_attributes, NULL);
    pthread_create(&threads[2], NULL, bound_by_another, NULL);
    pthread_setaffinity_np(threads[2], sizeof own[2], &own[2]);
    const double longest = now() + kLongest, half_a_second = now() + 0.5;
    while (!are_all_there() && now() < longest) usleep(1000);
    if (beside && count > 2) fclose(fopen(words[2], "w"));
    bool moved = false, all_there = true;
    while (now() < (beside ? longest : half_a_second) && !(beside && moved && all_there)) {
        usleep(1000);
        all_there = are_all_there();
        moved |= !all_there;
    }
    bool right = all_there && moved == beside;
    for (int i = 0; i < kThreads && !all_there; ++i)
        if (!is_there(i)) printf("bound %s: elsewhere\n", ways[i]);
    for (int i = 0; i < kThreads; ++i) {
        right &= !is_told_another[i];
        if (is_told_another[i]) printf("bound %s: told another mask\n", ways[i]);
    }
    if (moved != beside) printf(moved ? "moved\n" : "not moved\n");
    ends = true;
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
    return right ? 0 : 1;
}
