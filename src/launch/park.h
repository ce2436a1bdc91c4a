/* Stops the program's threads while other programs have their turn (src/arbiter/turns.cpp), and lets them go
 * on.
 *
 * Each thread that runs gets a signal whose handler sleeps. SIGSTOP would be seen by a shell's job control
 * and by whoever waits for the program, and the freezer of control groups is seldom ours to write. The signal
 * is SIGURG, which is ignored by default, so that one that comes late does nothing; a program that handles it
 * itself cannot be parked. Threads that wait in the kernel are left alone: a signal would end some waits
 * early. The handler is installed when it is first needed, which is never where no gang is.
 *
 * The helper thread alone calls these. A parked thread may hold any lock of the program: until park_end()
 * nothing but system calls is safe.
 */
#ifndef HEDDLE_LAUNCH_PARK_H
#define HEDDLE_LAUNCH_PARK_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

/* Parks every thread that runs now but `helper`; to be called again from time to time, because others wake
 * up, or run on for longer than we wait. False: they cannot be listed. */
bool park_threads(pid_t helper);
/* Gives each thread that ran when the program was parked a CPU of its own, where there are enough: the system
 * may leave two on one for a whole turn. False where it did nothing. */
bool park_spread(const cpu_set_t* cpus);
void park_end(void);
/* Any thread: sleeps while the program is parked. True where it was. */
bool park_here(void);
void park_forget_in_child(void);

#endif
