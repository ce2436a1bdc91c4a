/* All of it is in al4san.h; AL4SAN has it here, too. */
#ifndef HEDDLE_COMPAT_CONTROL_AL4SAN_AUXILIARY_H
#define HEDDLE_COMPAT_CONTROL_AL4SAN_AUXILIARY_H
#include "../al4san.h"
#endif
