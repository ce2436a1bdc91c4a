/* All of it is in al4san.h; AL4SAN has it here, too. */
#ifndef HEDDLE_COMPAT_AL4SAN_RUNTIME_H
#define HEDDLE_COMPAT_AL4SAN_RUNTIME_H
#include "../al4san.h"
#endif
