/* Blocking calls and threads of the program, counted in its demand (see blocking.c). */
#ifndef HEDDLE_LAUNCH_BLOCKING_H
#define HEDDLE_LAUNCH_BLOCKING_H

#include <stdbool.h>

/* Starts a detached thread of ours: not one of the program's, so it does not count as demand. */
bool blocking_start_uncounted(void* (*run)(void*), void* argument);

#endif
