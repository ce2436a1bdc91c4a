/* The first words of a program to its arbiter: connect, and say who it is.
 *
 * `heddle run` says them for the program that it becomes and hands the socket over, so that the answer is
 * there before the program's own code runs. The library in the program says them for a forked child, and to
 * an arbiter that came back. Without state; any thread may call these. A socket that was handed over ends
 * with the process, so that an arbiter never keeps a program that could not start.
 */
#ifndef HEDDLE_LAUNCH_HELLO_H
#define HEDDLE_LAUNCH_HELLO_H

#include <sched.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "cores/protocol.h"

/* On a machine with three times as many threads that run as CPUs an answer took 0.25 s once in some hundreds.
 */
enum { kAnswerDeadlineMs = 1000 };

/* What a program says of itself; the rest is in HEDDLE_MIN, HEDDLE_MAX, HEDDLE_WEIGHT, HEDDLE_OWN and
 * HEDDLE_NAME. */
struct hello {
    const char* name; /* without HEDDLE_NAME */
    enum heddle_client_mode mode;
    int demand;
    const cpu_set_t* allowed;
    const cpu_set_t* held; /* under an arbiter that died, or NULL */
};

/* HEDDLE_MODE. */
enum heddle_client_mode hello_mode(void);
/* HEDDLE_MAX: how many CPUs the program holds at most; 0: no limit. */
unsigned hello_max_cpus(void);
/* A connected socket with a high number, closed on exec; -1 and errno where nobody listens, or who listens is
 * stopped and has a full backlog. */
int hello_connect(const char* path);
/* The same file under a high number, where there is one, in place of `fd`: programs expect their first
 * descriptors to be 3, 4, ... -1 stays. */
int hello_out_of_the_way(int fd);
/* Returns 0 or an errno. */
int hello_send(int socket, const struct hello* hello);
/* As recvmsg(). Of an arbiter that hung up before it had read all: what it said at last. */
ssize_t hello_receive(int socket, struct msghdr* packet, int flags);

/* Who says this stays, as an observer that sees nothing: its arbiter does not end of idleness. The socket is
 * kept over the coming exec, and closed in what that program starts. False where that fails. */
bool hello_stay(int socket);
/* Keeps the socket over the coming exec and tells the program of it, and of the name that it has there. False
 * without memory. */
bool hello_hand_over(int socket, const cpu_set_t* allowed, const char* name);
/* The socket that was handed over to this process, and to no other one with the same environment; -1 without
 * one. Closed on exec from now on. The name is cut to its room. */
int hello_take_over(cpu_set_t* allowed, char name[HEDDLE_NAME_BYTES]);
/* Forgets one that is not for us. */
void hello_discard(void);

#endif
