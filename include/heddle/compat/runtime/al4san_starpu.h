/* All of it is in al4san.h; AL4SAN has it here, too. */
#ifndef HEDDLE_COMPAT_RUNTIME_AL4SAN_STARPU_H
#define HEDDLE_COMPAT_RUNTIME_AL4SAN_STARPU_H
#include "../al4san.h"
#endif
