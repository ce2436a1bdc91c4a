/* Makes the threads of this process follow its grant.
 *
 * One helper thread waits on the arbiter's socket. When the grant changes it binds every thread of the
 * process to the CPUs granted, tells libgomp to wait without burning cores while somebody else could use
 * them, and answers the arbiter. It runs nothing while nothing changes.
 */
#ifndef HEDDLE_LAUNCH_FOLLOW_H
#define HEDDLE_LAUNCH_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Obeys the first grant and starts the helper thread. Called once the link is open. Returns false when no
 * thread could be made: the program then runs unmanaged. */
bool follow_start(void);
/* The helper thread's id; 0: there is none. */
pid_t follow_helper(void);
/* Ends the helper thread, where it is the only one beside the calling one. False: there are others, or it
 * does not end. */
bool follow_end(void);
void follow_forget_in_child(void);
/* Ends the helper thread, whatever other threads there are. */
void follow_stop(void);
/* Then, when the grant is forgotten: all run wherever the program may. */
void follow_let_go(void);

/* Of the grant that the threads were last bound to, by a look at all. */
uint32_t follow_epoch(void);
/* How many CPUs are granted and the threads of this process are bound to; 0 while there are none. */
unsigned follow_cpus(void);
/* The threads are kept off some of the CPUs that the program may use: also while none is granted, when they
 * stay where they were, and in a child that the C library knows nothing of. */
bool follow_is_bound(void);
/* The same, for a region that has just asked for more: what is free already comes within 0.1 ms, and a team
 * that has begun does not grow. Waits a little, unless the last wait was in vain and not long ago. */
unsigned follow_cpus_soon(unsigned wanted);

#endif
