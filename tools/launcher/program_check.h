/* What execvp(3) would run, and whether it can be managed: told before it runs. */
#ifndef HEDDLE_LAUNCHER_PROGRAM_CHECK_H
#define HEDDLE_LAUNCHER_PROGRAM_CHECK_H

#include <limits.h>
#include <stdbool.h>

/* The file that `name` stands for, by PATH where it has no slash. 0, or as an errno why there is none: EACCES
 * where there are only files that may not be run. */
int program_find(const char* name, char path[PATH_MAX]);

/* NULL where libraries can be loaded into the program, or a reason why not: it is static, of another kind
 * than this system's own programs, or runs with rights that its user lacks. Of a script it is the interpreter
 * that counts. A file that cannot be read has no such reason. `children` says whether libraries can be loaded
 * into what it starts all the same. */
const char* program_unmanageable(const char* path, bool* children);

#endif
