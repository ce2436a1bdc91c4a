// plain: what ordinary programs do with their process. `plain WHAT`, see main.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "busy.h"

static void* spin(void* seconds) {
    work(*(double*)seconds);
    return NULL;
}

static volatile sig_atomic_t interrupts;
static void count_interrupt(int signal) {
    (void)signal;
    ++interrupts;
}

// Counts the interrupts that arrive within a second after it said so.
static int count_interrupts(void) {
    struct sigaction action = {.sa_handler = count_interrupt};
    sigaction(SIGINT, &action, NULL);
    puts("ready");
    fflush(stdout);
    for (const double end = now() + 1; now() < end;) usleep(1000);
    printf("interrupts %d\n", (int)interrupts);
    return 0;
}

static ino_t identity_of(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

// From now on this system call has that result.
static bool forbid(unsigned number, unsigned result) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, result),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// As man-db has its programs run: whatever speaks to others is the end.
static int enter_sandbox(const char* when_gone) {
    double seconds = 0.05;
    pthread_t other;
    pthread_create(&other, NULL, spin, &seconds);
    while (access(when_gone, F_OK) == 0) usleep(1000);
    if (!forbid(SYS_sendto, SECCOMP_RET_KILL_PROCESS) || !forbid(SYS_socket, SECCOMP_RET_KILL_PROCESS) ||
        !forbid(SYS_recvfrom, SECCOMP_RET_KILL_PROCESS) || !forbid(SYS_gettid, SECCOMP_RET_KILL_PROCESS) ||
        !forbid(SYS_sched_getaffinity, SECCOMP_RET_KILL_PROCESS))
        return 1;
    pthread_join(other, NULL);
    for (int i = 0; i < 20; ++i) {
        pthread_create(&other, NULL, spin, &seconds);
        pthread_join(other, NULL);
    }
    execlp("echo", "echo", "alive", NULL);
    return 1;
}

// Closes what it does not know, and opens its own: none of it may get lost or read by somebody else.
static int close_all(const char* how) {
    if (strcmp(how, "old") == 0 && !forbid(SYS_close_range, SECCOMP_RET_ERRNO | ENOSYS)) return 1;
    int known[2];
    if (pipe(known) != 0) return 1;
    const ino_t identity = identity_of(known[0]);
    if (strcmp(how, "from") == 0 || strcmp(how, "old") == 0) closefrom(3);
    if (strcmp(how, "range") == 0) close_range(3, ~0u, 0);
    for (int fd = 3; fd < 1024; ++fd) {
        if (strcmp(how, "raw") == 0) syscall(SYS_close, fd);
        if (strcmp(how, "one") == 0) close(fd);
    }
    if (strcmp(how, "none") != 0 && identity_of(known[0]) == identity) return 1;
    int pair[2];
    if (pipe(pair) != 0) return 1;
    const int end = 900;
    for (int fd = 500; fd < end; ++fd) dup2(pair[0], fd);
    pthread_t others[2];
    double seconds = 0.3;
    for (int i = 0; i < 2; ++i) pthread_create(&others[i], NULL, spin, &seconds);
    for (int i = 0; i < 2; ++i) pthread_join(others[i], NULL);
    char bytes[8] = {0};
    if (write(pair[1], "intact", 6) != 6 || read(pair[0], bytes, 6) != 6) return 1;
    puts(bytes);
    return 0;
}

static int become_daemon(const char* path) {
    if (daemon(1, 0) != 0) return 1;
    double seconds = 0.2;
    pthread_t other;
    pthread_create(&other, NULL, spin, &seconds);
    pthread_join(other, NULL);
    FILE* file = fopen(path, "w");
    if (file == NULL) return 1;
    fputs("done\n", file);
    return fclose(file);
}

// What of the arbiter is in this process: its pages mapped, its socket open.
static void print_link(const char* who) {
    int pages = 0, sockets = 0;
    char line[512];
    FILE* maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) pages += strstr(line, "memfd:") != NULL;
    if (maps != NULL) fclose(maps);
    for (int fd = 3; fd < 1024; ++fd) {
        struct stat status;
        sockets += fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
    }
    printf("%s pages %d sockets %d\n", who, pages, sockets);
    fflush(stdout);
}

// A child that does what children do before they exec: `raw` by the system call, past the C library's fork.
static int fork_child(bool raw) {
    print_link("parent");
    const pid_t child = raw ? (pid_t)syscall(SYS_fork) : fork();
    if (child == 0) {
        char byte;
        const int null = open("/dev/null", O_RDONLY);
        const bool works = read(null, &byte, 1) == 0 && usleep(2000) == 0;
        print_link("child");
        _exit(works ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) printf("child died of signal %d\n", WTERMSIG(status));
    return WEXITSTATUS(status);
}

// Binds its child to a CPU before that has a thread, as launchers of workers do; the child says on how many
// it is.
static int pin_child(void) {
    int go[2];
    if (pipe(go) != 0) return 1;
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        double seconds = 0.05;
        pthread_t other;
        if (read(go[0], &byte, 1) != 1) _exit(1);
        pthread_create(&other, NULL, spin, &seconds);
        pthread_join(other, NULL);
        cpu_set_t mask;
        sched_getaffinity(0, sizeof mask, &mask);
        printf("%d\n", CPU_COUNT(&mask));
        fflush(stdout);
        _exit(0);
    }
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &all)) ++cpu;
    CPU_SET(cpu, &one);
    int status = 1;
    if (sched_setaffinity(child, sizeof one, &one) != 0 || write(go[1], "x", 1) != 1) return 1;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static int spawn(void) {
    char* words[] = {"nproc", NULL};
    pid_t child;
    int status;
    if (posix_spawnp(&child, "nproc", NULL, NULL, words, environ) != 0) return 1;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static int cpus(void) {
    cpu_set_t mask;
    return sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 0;
}

// Says how many of so many children were born with fewer CPUs than this program has.
static int spawn_many(const char* itself, const char* how, int times) {
    char* words[] = {"plain", "cpus", NULL};
    char* nothing[] = {NULL};
    int narrow = 0;
    for (int i = 0; i < times; ++i) {
        pid_t child;
        int status;
        if (strcmp(how, "spawn") == 0) {
            if (posix_spawn(&child, itself, NULL, NULL, words, nothing) != 0) return 1;
        } else if ((child = strcmp(how, "vfork") == 0 ? vfork() : fork()) == 0) {
            execve(itself, words, nothing);
            _exit(127);
        }
        waitpid(child, &status, 0);
        narrow += WEXITSTATUS(status) < cpus();
    }
    printf("%d\n", narrow);
    return 0;
}

static int spawn_by_vfork(void) {
    const pid_t child = vfork();
    if (child == 0) {
        execlp("nproc", "nproc", (char*)NULL);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

int main(int count, char** words) {
    const char* what = count > 1 ? words[1] : "";
    const char* detail = count > 2 ? words[2] : "0";
    if (strcmp(what, "exit") == 0) return atoi(detail);
    if (strcmp(what, "raise") == 0) return raise(atoi(detail));
    if (strcmp(what, "interrupts") == 0) return count_interrupts();
    if (strcmp(what, "close") == 0) return close_all(detail);
    if (strcmp(what, "sandbox") == 0) return enter_sandbox(detail);
    if (strcmp(what, "fork") == 0) return fork_child(strcmp(detail, "raw") == 0);
    if (strcmp(what, "pin-child") == 0) return pin_child();
    if (strcmp(what, "link") == 0) return print_link("program"), 0;
    if (strcmp(what, "daemon") == 0) return become_daemon(detail);
    if (strcmp(what, "vfork") == 0) return spawn_by_vfork();
    if (strcmp(what, "spawn") == 0) return spawn();
    if (strcmp(what, "cpus") == 0) return cpus();
    if (strcmp(what, "spawn-many") == 0)
        return spawn_many(words[0], count > 3 ? words[3] : "spawn", atoi(detail));
    if (strcmp(what, "system") == 0) return WEXITSTATUS(system("nproc"));
    if (strcmp(what, "sleep") == 0) return (int)sleep((unsigned)atoi(detail));
    if (strcmp(what, "spin") == 0) {
        double seconds = atof(detail);
        pthread_t other;
        pthread_create(&other, NULL, spin, &seconds);
        spin(&seconds);
        pthread_join(other, NULL);
        return 0;
    }
    return 2;
}
