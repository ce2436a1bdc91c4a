/* A thread of the program begins or ends a wait in which it needs no CPU. Any thread may call these; those of
 * ours are not counted. Where the process is unmanaged they cost a nanosecond. */
#ifndef HEDDLE_LAUNCH_WAITING_H
#define HEDDLE_LAUNCH_WAITING_H

#include <stdbool.h>

/* `is_long`: known to last, so that the arbiter is told at once; of others it learns when it looks (see
 * protocol.h, ClientPage). True where it was counted and waiting_end() has to undo it. */
bool waiting_begin(bool is_long);
/* Keeps errno, the result of the call that has just ended. */
void waiting_end(bool began);
void waiting_forget_in_child(void);
/* The calling thread is the program's first. */
void waiting_is_main(void);
/* The calling thread, which a runtime began for our sake, is not counted from here to there. */
void waiting_begins_as_ours(void);
void waiting_ends_as_ours(void);
/* How many threads are ours: those that we started, and those in between the two. */
unsigned waiting_ours(void);

/* Starts a detached thread of ours: not one of the program's, so it does not count as demand. */
bool waiting_start_uncounted(void* (*run)(void*), void* argument);

#endif
