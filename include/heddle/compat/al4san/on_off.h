/* For flags that are switched, as AL4SAN_CUDA_FLG: AL4SAN's header of each runtime has these, and al4san.h
 * has not, since so short names may be a program's own. */
#ifndef HEDDLE_COMPAT_AL4SAN_ON_OFF_H
#define HEDDLE_COMPAT_AL4SAN_ON_OFF_H

#define ON 1
#define OFF 0

#endif
