/* What AL4SAN has here is in al4san.h, but for ON and OFF. */
#ifndef HEDDLE_COMPAT_RUNTIME_AL4SAN_OPENMP_H
#define HEDDLE_COMPAT_RUNTIME_AL4SAN_OPENMP_H
#include "../al4san.h"
#include "../al4san/on_off.h"
#endif
