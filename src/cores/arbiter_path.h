/* Where the arbiter listens, from HEDDLE_ARBITER or the usual places. C, for the launcher; used by the tools
 * too. */
#ifndef HEDDLE_CORES_ARBITER_PATH_H
#define HEDDLE_CORES_ARBITER_PATH_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum heddle_arbiter_place {
    HEDDLE_ARBITER_OFF,       /* HEDDLE_ARBITER=off */
    HEDDLE_ARBITER_EXPLICIT,  /* a path that somebody named: never started on demand */
    HEDDLE_ARBITER_SYSTEM,    /* a system-wide one is installed */
    HEDDLE_ARBITER_USER,      /* the user's own, started on demand; its folder exists now and is the user's */
    HEDDLE_ARBITER_IMPOSSIBLE /* `problem` says why */
};

enum { HEDDLE_SOCKET_PATH_BYTES = 108, HEDDLE_PROBLEM_BYTES = 320 };

/* Where the arbiter of all users listens. */
#define HEDDLE_SYSTEM_FOLDER "/run/heddle"
#define HEDDLE_SYSTEM_SOCKET HEDDLE_SYSTEM_FOLDER "/arbiter.sock"
/* Where its socket is there and nobody listens. One of the user's own in its place would hand out CPUs that
 * programs of the other still hold (docs/ARBITER.md). */
#define HEDDLE_SYSTEM_ARBITER_DIED                      \
    "the arbiter of all users at " HEDDLE_SYSTEM_SOCKET \
    " has died; root starts it again: heddled "         \
    "--all-users"

/* False fills `problem`: HEDDLE_ARBITER is nothing that it can be. Any thread. */
bool heddle_arbiter_named_well(char problem[HEDDLE_PROBLEM_BYTES]);

/* Fills `path` for EXPLICIT, SYSTEM and USER; `problem` for IMPOSSIBLE. Any thread. */
enum heddle_arbiter_place heddle_arbiter_path(char path[HEDDLE_SOCKET_PATH_BYTES],
                                              char problem[HEDDLE_PROBLEM_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
