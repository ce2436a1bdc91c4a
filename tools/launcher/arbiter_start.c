#define _GNU_SOURCE
#include "arbiter_start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kReadyWithinMs = 2000, kConnectWithinMs = 250 };
/* An arbiter that nobody uses ends after so long; the next `heddle run` starts another. */
#define IDLE_EXIT_SECONDS "60"

bool arbiter_listens(const char* path) {
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    /* One that is stopped, with a full backlog, counts as none. */
    const struct timeval deadline = {.tv_usec = kConnectWithinMs * 1000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof deadline);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    const bool connected = connect(fd, (const struct sockaddr*)&address, sizeof address) == 0;
    const int why = errno;
    close(fd);
    errno = why;
    return connected;
}

/* In the grandchild: not a child of the program that we become, not of its session, and without its
 * descriptors. */
static void become_daemon(const char* daemon, const char* path, int ready) {
    setsid();
    if (chdir("/") != 0) _exit(1);
    const int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    dup2(ready, 3);
    close_range(4, ~0u, 0);
    unsetenv("LD_PRELOAD");
    /* The arbiter is everybody's: it must not inherit the affinity of whoever happened to start it. */
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
    /* Somebody asks for CPUs of its own, and nobody else is there who expects another policy. */
    const char* own = getenv("HEDDLE_OWN");
    execl(daemon, "heddled", "--socket", path, "--idle-exit", IDLE_EXIT_SECONDS, "--ready-fd", "3",
          "--policy", own != NULL && *own != '\0' ? "owned" : "proportional", (char*)NULL);
    _exit(1);
}

/* Starts the daemon and waits for its byte. */
static bool start(const char* daemon, const char* path) {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) return false;
    const pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) become_daemon(daemon, path, ready[1]);
        _exit(0);
    }
    close(ready[1]);
    struct pollfd byte = {.fd = ready[0], .events = POLLIN};
    char unused;
    const bool started = child > 0 && waitpid(child, NULL, 0) == child &&
                         poll(&byte, 1, kReadyWithinMs) == 1 && read(ready[0], &unused, 1) == 1;
    close(ready[0]);
    return started;
}

bool arbiter_ensure(const char* path, const char* daemon, char problem[HEDDLE_PROBLEM_BYTES]) {
    if (arbiter_listens(path)) return true;
    char lock_path[HEDDLE_SOCKET_PATH_BYTES + sizeof ".start"];
    snprintf(lock_path, sizeof lock_path, "%s.start", path);
    const int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0) {
        snprintf(problem, HEDDLE_PROBLEM_BYTES, "cannot make %s: %s", lock_path, strerror(errno));
        return false;
    }
    while (flock(lock, LOCK_EX) != 0 && errno == EINTR) {
    }
    const bool listens = arbiter_listens(path) || start(daemon, path);
    if (!listens)
        snprintf(problem, HEDDLE_PROBLEM_BYTES, "%s did not start; run it by hand to see why", daemon);
    close(lock);
    return listens;
}
