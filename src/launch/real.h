/* The function that a wrapper stands before: resolved once; a program may call before our constructor has
 * run. */
#ifndef HEDDLE_LAUNCH_REAL_H
#define HEDDLE_LAUNCH_REAL_H

#include <dlfcn.h>

#define REAL(name)                 \
    static __typeof__(&name) real; \
    if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);
/* Where an older version goes by the same name, which dlsym would find. */
#define REAL_VERSION(name, version)                                                \
    static __typeof__(&name) real;                                                 \
    if (real == NULL) real = (__typeof__(&name))dlvsym(RTLD_NEXT, #name, version); \
    if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);

#endif
