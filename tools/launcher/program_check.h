/* Which programs cannot be managed, told before they run. */
#ifndef HEDDLE_LAUNCHER_PROGRAM_CHECK_H
#define HEDDLE_LAUNCHER_PROGRAM_CHECK_H

/* NULL where libraries can be loaded into the program, or a reason why not: it is static, or setuid or
 * setgid. A program that is not found, or a script, has no such reason. */
const char* program_unmanageable(const char* name);

#endif
