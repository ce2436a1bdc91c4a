/* LLVM's libomp under management (see libomp.c): what the program is told of its numbers of threads. */
#ifndef HEDDLE_LAUNCH_LIBOMP_H
#define HEDDLE_LAUNCH_LIBOMP_H

/* libomp says that the calling thread's next region has `number` threads: what the program itself asked for.
 */
int libomp_own_number(int number);
/* The program sets the number for the calling thread's next regions. */
void libomp_number_was_set(void);

#endif
