/* The life of this process under management: begin, fork, exec. */
#ifndef HEDDLE_LAUNCH_PROCESS_H
#define HEDDLE_LAUNCH_PROCESS_H

#include <stdbool.h>

/* A forked child is nobody to the arbiter until it becomes parallel: called where a region opens or a thread
 * is made. One load where there is nothing to do. */
void process_join(void);
/* For a process with one thread of its own, which may have no other one now: ends the helper thread, and is
 * as a forked child from then on. False: that cannot be, and nothing has changed. */
bool process_leave(void);
/* From now on nobody of this process, and of what it starts, speaks to an arbiter. */
void process_renounce(void);

#endif
