/* What the program sees and passes on of its affinity.
 *
 * The helper thread binds the program's threads to the grant, and that is nobody else's business: a runtime
 * that counts the CPUs of its mask once, at start, gets those that the program may ever use, and so does a
 * program that this one starts. Any thread may call these.
 */
#ifndef HEDDLE_LAUNCH_AFFINITY_H
#define HEDDLE_LAUNCH_AFFINITY_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What affinity_narrow() undoes. */
struct affinity_widened {
    bool is;
    cpu_set_t before;
    _Atomic pid_t* place; /* by which those know that bind threads, or NULL */
};
/* Lets the calling thread run wherever the program may, or where that has bound this thread itself, before an
 * exec and a fork: what becomes of it inherits that. */
struct affinity_widened affinity_widen(void);
/* Binds the calling thread to the grant again, where an exec failed or a child was started. */
void affinity_narrow(const struct affinity_widened* widened);
/* The same around fork(), in the parent; in the child: affinity_is_chosen() of who forked. */
void affinity_before_fork(void);
void affinity_after_fork(void);
bool affinity_is_chosen_by_fork(void);

/* The program is about to bind a thread, perhaps in a constructor before ours. */
void affinity_before_binding(void);
/* In our constructor: what the first thread began with. False, with errno: it cannot be read. */
bool affinity_at_start(cpu_set_t* mask);
/* What the system has of the calling thread. The same. */
bool affinity_read(cpu_set_t* mask);

/* This process is going to have a helper thread; and has none any more. */
void affinity_begins(void);
void affinity_ends(void);
/* Around a look at all threads that binds them: who is widened later waits for its end first. */
void affinity_look_begins(void);
void affinity_look_ends(void);
/* True for a thread that is widened: it is left alone, and binds itself when it is narrowed. */
bool affinity_pass_over(pid_t thread);

/* Puts the program's own mask of the thread in the place of ours into `mask` of `bytes` bytes, which the
 * system filled. */
void affinity_hide_grant(pid_t thread, cpu_set_t* mask, size_t bytes);
/* A thread of this process; 0: the calling one. Others' masks are none of our business. */
bool affinity_concerns(pid_t thread);
/* The number of a thread of this process that is known to the C library; false: it has ended. */
bool affinity_number_of(pthread_t thread, pid_t* number);
/* The system call, with its result and errno, as the program makes it. The thread gets those of the CPUs that
 * are granted; where none is it gets them all the same, until the threads are looked at. */
long affinity_set_by_program(pid_t thread, size_t bytes, const cpu_set_t* mask);
/* What the program has bound the calling thread to; false: it may run wherever the program may. */
bool affinity_find_own(cpu_set_t* mask);
/* It has, and not by a constructor before ours, which would be no word of what the process is to use. */
bool affinity_is_chosen(void);
/* A thread begins, with that own mask, or NULL, and bound to the grant of that epoch, or 0: to none. It binds
 * itself, as affinity_bind() does, where that is not the grant any more. */
void affinity_thread_begins(const cpu_set_t* own, uint32_t epoch);
void affinity_thread_ends(void);
/* Of the grant. */
uint32_t affinity_epoch(void);
/* Since the last call threads have been bound to another grant, or by the program to CPUs of none: not all
 * are where the last look put them. */
bool affinity_threads_follow(void);
/* Binds a thread of this process, 0 being the calling one: to those of the CPUs that the program has bound it
 * to, where there are such; or as it is said. False: not done; the thread is gone, or the system allows none
 * of them. */
bool affinity_bind(pid_t thread, const cpu_set_t* cpus);
bool affinity_set(pid_t thread, const cpu_set_t* cpus);

#endif
