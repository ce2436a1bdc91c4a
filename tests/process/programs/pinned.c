// pinned: threads that are bound to one CPU each, in four ways, and work. `pinned alone`: for half a second;
// `pinned beside READY`: until one of them has run elsewhere and all are back; the file READY says when it
// can. Says who is not where it should be, or is told of another mask than its own.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "busy.h"

enum { kThreads = 4, kLongest = 20 };
static const char* const ways[kThreads] = {"by itself", "by attributes", "by another", "by its maker"};
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

static void* bound_by_another(void* unused) {
    numbers[2] = gettid();
    cpu_set_t now;
    do sched_getaffinity(0, sizeof now, &now);
    while (!CPU_EQUAL(&now, &own[2]));
    stay(2);
    return unused;
}

static void* bound_by_attributes(void* unused) {
    pthread_t another;
    pthread_create(&another, NULL, bound_by_maker, NULL);
    stay(1);
    pthread_join(another, NULL);
    return unused;
}

static void* bound_by_itself(void* unused) {
    sched_setaffinity(0, sizeof own[0], &own[0]);
    stay(0);
    return unused;
}

// As the system has it, and not as it is told.
static bool is_there(int which) {
    char path[64], line[256], list[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)numbers[which]);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &own[which])) ++cpu;
    snprintf(list, sizeof list, "Cpus_allowed_list:\t%d\n", cpu);
    FILE* status = fopen(path, "r");
    bool found = false;
    while (status != NULL && fgets(line, sizeof line, status) != NULL) found |= strcmp(line, list) == 0;
    if (status != NULL) fclose(status);
    return found;
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
    for (int i = 0, cpu = -1; i < kThreads; ++i) {
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
