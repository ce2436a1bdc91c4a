/* What the program sees and passes on of its affinity.
 *
 * The helper thread binds the program's threads to the grant, and that is nobody else's business: a runtime
 * that counts the CPUs of its mask once, at start, gets those that the program may ever use, and so does a
 * program that this one starts. Any thread may call these.
 */
#ifndef HEDDLE_LAUNCH_AFFINITY_H
#define HEDDLE_LAUNCH_AFFINITY_H

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
/* The same around fork(), in the parent; in the child: whether it was born so. */
void affinity_before_fork(void);
void affinity_after_fork(void);
bool affinity_is_widened_by_fork(void);

/* This process is going to have a helper thread; and has none any more. */
void affinity_begins(void);
void affinity_ends(void);
/* Around a look at all threads that binds them: who is widened later waits for its end first. */
void affinity_look_begins(void);
void affinity_look_ends(void);
/* True for a thread that is widened: it is left alone, and binds itself when it is narrowed. */
bool affinity_pass_over(pid_t thread);

/* Puts the program's own mask in the place of ours into `mask` of `bytes` bytes, which the system filled. */
void affinity_hide_grant(cpu_set_t* mask, size_t bytes);
/* A thread of this process; 0: the calling one. Others' masks are none of our business. */
bool affinity_concerns(pid_t thread);
/* The system call, as the program makes it by its number. */
long affinity_set_by_number(pid_t thread, size_t bytes, const cpu_set_t* mask);
/* The calling thread ends; of a forked child it is the only one. */
void affinity_forget_choice(void);
void affinity_forget_in_child(void);
/* The program has bound the calling thread by a call of that thread. */
bool affinity_is_chosen(void);
/* Of the grant; and binds the calling thread, which began with that one's mask, where there is another. */
uint32_t affinity_epoch(void);
void affinity_follow_since(uint32_t epoch);
/* Since the last call threads have bound themselves to a grant: not all are where the last look put them. */
bool affinity_threads_follow(void);
/* Binds a thread of this process, 0 being the calling one. False: not done; the thread is gone, or the system
 * allows none of them. */
bool affinity_set(pid_t thread, const cpu_set_t* cpus);

#endif
