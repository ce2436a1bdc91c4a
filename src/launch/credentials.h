/* What the system keeps by thread, where the C library counts on its being the process's. */
#ifndef HEDDLE_LAUNCH_CREDENTIALS_H
#define HEDDLE_LAUNCH_CREDENTIALS_H

/* To be called before each system call that a program makes by its number. Any thread. */
void credentials_look_at(long number, long first);

#endif
