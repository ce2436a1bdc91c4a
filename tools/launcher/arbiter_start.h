/* Starts the user's own arbiter when none is running. */
#ifndef HEDDLE_LAUNCHER_ARBITER_START_H
#define HEDDLE_LAUNCHER_ARBITER_START_H

#include "cores/arbiter_path.h"

/* A socket connected to the arbiter at `path`: the one that is there, or one that this call started from the
 * executable `daemon`. Two callers at once start one. -1 fills `problem`. Waits two seconds at most. */
int arbiter_ensure(const char* path, const char* daemon, char problem[HEDDLE_PROBLEM_BYTES]);

#endif
