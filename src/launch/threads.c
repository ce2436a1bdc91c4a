#define _GNU_SOURCE
#include "threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "affinity.h"

/* Threads whose clocks are remembered; those beyond are asked for their state each time. */
enum { kMaxClocks = 1024, kListBytes = 4096, kPathBytes = 64, kStatBytes = 512, kStatusBytes = 4096 };

struct clock {
    pid_t thread;
    uint64_t used_ns;
};
static struct clock clocks[kMaxClocks];
static unsigned clock_count;
static uint64_t sampled_at_ns;

/* The wrappers of libc may be hooked, by us or by others. */
static int open_quietly(const char* path, int flags) {
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC);
}

bool threads_visit(pid_t except, void (*visit)(pid_t thread, void* data), void* data) {
    const int folder = open_quietly("/proc/self/task", O_RDONLY | O_DIRECTORY);
    if (folder < 0) return false;
    union {
        struct dirent64 entry;
        char bytes[kListBytes];
    } list;
    long got;
    while ((got = syscall(SYS_getdents64, folder, &list, sizeof list)) > 0)
        for (long at = 0; at < got;) {
            const struct dirent64* entry = (const struct dirent64*)(list.bytes + at);
            const pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
            if (thread > 0 && thread != except) visit(thread, data);
            at += entry->d_reclen;
        }
    syscall(SYS_close, folder);
    return got == 0;
}

static void count_one(pid_t thread, void* count) {
    (void)thread;
    ++*(unsigned*)count;
}

unsigned threads_count(pid_t except) {
    unsigned count = 0;
    (void)threads_visit(except, count_one, &count);
    return count;
}

struct binding {
    const cpu_set_t* cpus;
    bool refused;
};

static void bind_one(pid_t thread, void* data) {
    struct binding* binding = data;
    if (affinity_pass_over(thread)) return;
    if (!affinity_bind(thread, binding->cpus) && errno == EINVAL) binding->refused = true;
}

enum threads_bound threads_bind(pid_t except, const cpu_set_t* cpus) {
    struct binding binding = {.cpus = cpus};
    bool seen = true;
    affinity_look_begins();
    for (int look = 0; seen && look < 2; ++look) seen = threads_visit(except, bind_one, &binding);
    affinity_look_ends();
    if (!seen) return THREADS_UNSEEN;
    return binding.refused ? THREADS_REFUSED : THREADS_BOUND;
}

/* The kernel's CPU clock of a thread of this process: see clock_getres(2), pthread_getcpuclockid(3). */
static bool used_by(pid_t thread, uint64_t* used_ns) {
    const clockid_t clock = (clockid_t)((~(unsigned)thread << 3) | 6u);
    struct timespec used;
    if (clock_gettime(clock, &used) != 0) return false;
    *used_ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
    return true;
}

/* A file of a thread, as proc(5) has it, or its beginning; false where there is none. */
static bool read_of(pid_t thread, const char* name, char* text, size_t bytes) {
    char path[kPathBytes];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)thread, name);
    const int file = open_quietly(path, O_RDONLY);
    if (file < 0) return false;
    const long got = syscall(SYS_read, file, text, bytes - 1);
    syscall(SYS_close, file);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

bool threads_blocks(pid_t thread, int number) {
    char text[kStatusBytes];
    const char* blocked = read_of(thread, "status", text, sizeof text) ? strstr(text, "\nSigBlk:") : NULL;
    if (blocked == NULL) return false;
    return (strtoull(blocked + strlen("\nSigBlk:"), NULL, 16) >> (number - 1) & 1u) != 0;
}

/* As proc(5) has it; '?' where there is no such thread. */
static char state_of(pid_t thread) {
    char text[kStatBytes];
    if (!read_of(thread, "stat", text, sizeof text)) return '?';
    /* The name in parentheses may itself contain any of this. */
    const char* name_end = strrchr(text, ')');
    return name_end != NULL && name_end[1] == ' ' ? name_end[2] : '?';
}

bool threads_is_runnable(pid_t thread) {
    return state_of(thread) == 'R';
}

bool threads_has_ended(pid_t thread) {
    return state_of(thread) == 'Z';
}

struct sample {
    struct clock now[kMaxClocks];
    unsigned count;
    uint64_t period_ns;
    unsigned runnable;
};

static void sample_one(pid_t thread, void* data) {
    struct sample* sample = data;
    struct clock now = {thread, 0};
    if (!used_by(thread, &now.used_ns)) return;
    uint64_t before = now.used_ns;
    for (unsigned i = 0; i < clock_count; ++i)
        if (clocks[i].thread == thread) before = clocks[i].used_ns;
    if (sample->count < kMaxClocks) sample->now[sample->count++] = now;
    const bool ran = sample->period_ns > 0 && (now.used_ns - before) * 2 >= sample->period_ns;
    if (ran || threads_is_runnable(thread)) ++sample->runnable;
}

bool threads_runnable(pid_t except, uint64_t now_ns, unsigned* runnable) {
    static struct sample sample; /* the helper thread's stack is the program's choice */
    sample.count = sample.runnable = 0;
    sample.period_ns = sampled_at_ns == 0 ? 0 : now_ns - sampled_at_ns;
    const bool seen = threads_visit(except, sample_one, &sample);
    memcpy(clocks, sample.now, sample.count * sizeof *clocks);
    clock_count = sample.count;
    sampled_at_ns = now_ns;
    *runnable = sample.runnable;
    return seen;
}
