/* The command line of `heddle run`, and the variables that say the same. */
#ifndef HEDDLE_LAUNCHER_RUN_OPTIONS_H
#define HEDDLE_LAUNCHER_RUN_OPTIONS_H

#include <stdbool.h>

enum { RUN_OPTIONS_OK = -1 };

/* Reads the options into the environment, where the program's library finds them, and checks what the
 * environment says. RUN_OPTIONS_OK: `command` is the index of the command's first word. Anything else is the
 * exit code; what was wrong, or the help, was printed. */
int run_options(int count, char** words, int* command, bool* require);

#endif
