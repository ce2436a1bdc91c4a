/* All of it is in al4san.h; AL4SAN has it here, too. */
#ifndef HEDDLE_COMPAT_RUNTIME_AL4SAN_PARSEC_H
#define HEDDLE_COMPAT_RUNTIME_AL4SAN_PARSEC_H
#include "../al4san.h"
#endif
