/* Which system calls begin a sandbox. */
#ifndef HEDDLE_LAUNCH_SANDBOX_H
#define HEDDLE_LAUNCH_SANDBOX_H

/* To be called before each system call that a program makes by its number. Any thread. */
void sandbox_look_at(long number, long first, long second, long third);

#endif
