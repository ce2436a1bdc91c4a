/* Waiting inside tasks for a time and for file descriptors, for C: heddle/await.hpp, which tells more.
 *
 *     heddle_sleep_for(10 * 1000 * 1000);
 *     if (heddle_wait_readable(socket, HEDDLE_NO_DEADLINE) == HEDDLE_TASK_SUCCESS) read(socket, ...);
 *
 * A task that waits costs its stack, not a worker; outside of tasks the thread sleeps. Times are nanoseconds
 * of CLOCK_MONOTONIC. Any thread, many at once for one descriptor too. Results and errors are as in
 * heddle/task.h. */
#ifndef HEDDLE_AWAIT_H
#define HEDDLE_AWAIT_H

#include <stdint.h>

#include "heddle/task.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_NO_DEADLINE INT64_MAX

/** Zero or less: returns at once. INVALID for one that ends beyond all times. LIMIT where the system has no
 * descriptor, thread or memory for it. */
HEDDLE_TASK_API heddle_task_ret_t heddle_sleep_for(int64_t duration_ns);
/** At once where the time has passed. INVALID for HEDDLE_NO_DEADLINE, which never comes. */
HEDDLE_TASK_API heddle_task_ret_t heddle_sleep_until(int64_t time_ns);

/** SUCCESS when the descriptor can be read from, or written to, without blocking, which may also find an end
 * or an error; at once for files. TIMEOUT: the deadline came first. INVALID for one that is not open, or is
 * closed meanwhile; LIMIT and SYSTEM where epoll(7) refuses. */
HEDDLE_TASK_API heddle_task_ret_t heddle_wait_readable(int fd, int64_t deadline_ns);
HEDDLE_TASK_API heddle_task_ret_t heddle_wait_writable(int fd, int64_t deadline_ns);

#ifdef __cplusplus
}
#endif

#endif
