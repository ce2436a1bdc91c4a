/* Starts the user's own arbiter when none is running. */
#ifndef HEDDLE_LAUNCHER_ARBITER_START_H
#define HEDDLE_LAUNCHER_ARBITER_START_H

#include <stdbool.h>

#include "cores/arbiter_path.h"

/* Somebody accepts connections at `path`; otherwise errno says why not. */
bool arbiter_listens(const char* path);

/* True once an arbiter listens at `path`: the one that is there, or one that this call started from the
 * executable `daemon`. Two callers at once start one. False fills `problem`. Waits two seconds at most. */
bool arbiter_ensure(const char* path, const char* daemon, char problem[HEDDLE_PROBLEM_BYTES]);

#endif
