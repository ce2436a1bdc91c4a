/* What the program has bound its threads to, which is more than the system remembers: it knows the mask that
 * we gave a thread last.
 *
 * For some thousand threads; any thread may call these, also together, but no child of vfork. Nothing is
 * allocated. Who writes waits for others who do; who reads waits for nobody.
 */
#ifndef HEDDLE_LAUNCH_OWN_MASKS_H
#define HEDDLE_LAUNCH_OWN_MASKS_H

#include <sched.h>
#include <stdbool.h>

/* False: there is no room. Then nothing is noted of that thread any more. */
bool own_masks_note(pid_t thread, const cpu_set_t* mask);
/* The same, unless there is a note of the thread. */
bool own_masks_note_first(pid_t thread, const cpu_set_t* mask);
bool own_masks_find(pid_t thread, cpu_set_t* mask);
void own_masks_forget(pid_t thread);
void own_masks_forget_all(void);

#endif
