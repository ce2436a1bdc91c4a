#define _GNU_SOURCE
#include "arbiter_start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/hello.h"

enum { kReadyWithinMs = 2000, kMostSaid = 4096 };
/* An arbiter that nobody uses ends after so long; the next `heddle run` starts another. */
#define IDLE_EXIT_SECONDS "60"

/* In the grandchild: not a child of the program that we become, not of its session, and without its
 * descriptors. */
static void become_daemon(const char* daemon, const char* path, int ready) {
    setsid();
    if (chdir("/") != 0) _exit(1);
    const int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 1);
    dup2(ready, 3);
    fcntl(3, F_SETFD, 0); /* where it was 3 already */
    dup2(ready, 2);       /* why it cannot start is for whoever waits; later nobody reads it */
    syscall(SYS_close_range, 4, ~0u, 0);
    unsetenv("LD_PRELOAD");
    /* The arbiter is everybody's: it must not inherit what whoever happened to start it ignores, or is bound
     * to. */
    static const int kEnding[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof kEnding / sizeof *kEnding; ++i) signal(kEnding[i], SIG_DFL);
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
    /* Somebody asks for CPUs of its own, and nobody else is there who expects another policy. */
    const char* own = getenv("HEDDLE_OWN");
    execl(daemon, "heddled", "--socket", path, "--idle-exit", IDLE_EXIT_SECONDS, "--ready-fd", "3",
          "--policy", own != NULL && *own != '\0' ? "owned" : "proportional", (char*)NULL);
    _exit(1);
}

/* What the daemon writes until it is ready or has ended: lines, then its byte. Keeps the last line. */
static bool await_ready(int ready, char said[kMostSaid]) {
    size_t length = 0;
    struct pollfd more = {.fd = ready, .events = POLLIN};
    while (length < kMostSaid - 1 && poll(&more, 1, kReadyWithinMs) == 1) {
        const ssize_t got = read(ready, said + length, kMostSaid - 1 - length);
        if (got <= 0) break;
        length += (size_t)got;
        if (said[length - 1] == '1' && (length == 1 || said[length - 2] == '\n')) return true;
    }
    while (length > 0 && said[length - 1] == '\n') --length;
    said[length] = '\0';
    const char* last = strrchr(said, '\n');
    if (last != NULL) memmove(said, last + 1, strlen(last));
    return false;
}

/* Starts the daemon and waits for it. False fills `said` with its last words. */
static bool start(const char* daemon, const char* path, char said[kMostSaid]) {
    int ready[2];
    *said = '\0';
    if (pipe2(ready, O_CLOEXEC) != 0) return false;
    /* Where it is ignored, as in what some programs start, nobody learns that a child has ended. */
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    struct sigaction before;
    sigaction(SIGCHLD, &usual, &before);
    const pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) become_daemon(daemon, path, ready[1]);
        _exit(0);
    }
    close(ready[1]);
    const bool started = child > 0 && waitpid(child, NULL, 0) == child && await_ready(ready[0], said);
    close(ready[0]);
    sigaction(SIGCHLD, &before, NULL);
    return started;
}

int arbiter_ensure(const char* path, const char* daemon, char problem[HEDDLE_PROBLEM_BYTES]) {
    int socket = hello_connect(path);
    if (socket >= 0) return socket;
    char lock_path[HEDDLE_SOCKET_PATH_BYTES + sizeof ".start"];
    snprintf(lock_path, sizeof lock_path, "%s.start", path);
    const int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0) {
        snprintf(problem, HEDDLE_PROBLEM_BYTES, "cannot make %s: %s", lock_path, strerror(errno));
        return -1;
    }
    while (flock(lock, LOCK_EX) != 0 && errno == EINTR) {
    }
    socket = hello_connect(path);
    static const char kFailed[] = "no arbiter could be started: ";
    char said[kMostSaid] = "";
    /* One that fails may have met another that was starting, or ending. */
    for (int tries = 0; socket < 0 && tries < 2; ++tries) {
        (void)start(daemon, path, said);
        socket = hello_connect(path);
    }
    if (socket < 0 && *said != '\0')
        snprintf(problem, HEDDLE_PROBLEM_BYTES, "%s%.*s", kFailed,
                 (int)(HEDDLE_PROBLEM_BYTES - sizeof kFailed), said);
    else if (socket < 0)
        snprintf(problem, HEDDLE_PROBLEM_BYTES, "%s did not start; run it by hand to see why", daemon);
    close(lock);
    return socket;
}
