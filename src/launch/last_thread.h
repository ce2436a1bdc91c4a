/* A program ends with its last thread, also where the first one has left before. */
#ifndef HEDDLE_LAUNCH_LAST_THREAD_H
#define HEDDLE_LAUNCH_LAST_THREAD_H

/* The calling thread is about to leave. */
void last_thread_leaves(void);
/* The calling thread is the program's first. */
void last_thread_is_first(void);
void last_thread_forget_in_child(void);

#endif
