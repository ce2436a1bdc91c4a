/* The threads of this process, as the kernel lists them: bound to CPUs, and counted where they run.
 *
 * Only threads of ours call this. It uses system calls alone, no allocation and no lock, because the
 * program's threads may be stopped anywhere meanwhile.
 */
#ifndef HEDDLE_LAUNCH_THREADS_H
#define HEDDLE_LAUNCH_THREADS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Calls `visit` for each thread but the one with id `except`. False: they cannot be listed, for want of a
 * descriptor or of /proc. */
bool threads_visit(pid_t except, void (*visit)(pid_t thread, void* data), void* data);

/* How many there are but `except`; 0: in all. */
unsigned threads_count(pid_t except);

/* Binds every thread but `except`. A thread that is born meanwhile inherits the mask of one that was bound,
 * or is found by a second look, or binds itself when it begins (affinity_thread_begins). REFUSED: the system
 * allows none of these CPUs. UNSEEN: threads_visit() is false. */
enum threads_bound { THREADS_BOUND, THREADS_REFUSED, THREADS_UNSEEN };
enum threads_bound threads_bind(pid_t except, const cpu_set_t* cpus);

/* The kernel calls the thread runnable: it runs, or would if it had a CPU. */
bool threads_is_runnable(pid_t thread);

/* A signal that comes to it waits. */
bool threads_blocks(pid_t thread, int number);

/* As the process's first thread, which stays listed while others run. */
bool threads_has_ended(pid_t thread);

/* For the helper thread alone. How many threads but `except` could run now: those that used at least half of
 * the time since the last call (by their CPU clocks), and those that the kernel calls runnable. `now_ns` is
 * CLOCK_MONOTONIC. False: as threads_visit(). */
bool threads_runnable(pid_t except, uint64_t now_ns, unsigned* runnable);

#endif
