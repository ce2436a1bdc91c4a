/* The function that a wrapper stands before. All are looked up before the program's main function runs: the
 * loader's lock, which a look-up takes, may later be held by a thread that waits for the one that calls us. A
 * program may call before that, too. */
#ifndef HEDDLE_LAUNCH_REAL_H
#define HEDDLE_LAUNCH_REAL_H

#include <dlfcn.h>
#include <stddef.h>

struct real_function {
    void** place;
    const char* name;
    const char* version; /* NULL: the default one */
};

/* Looks up all that the wrappers stand before. Called by the constructor. */
void real_look_up_all(void);

/* The C library's of that version; another object's that stands before it, as ThreadSanitizer's does. */
void* real_versioned(const char* name, const char* version);

/* The section has pointers, which lie side by side; compilers space larger things out. */
#define REAL_WITH(name, its_version)                                                 \
    static __typeof__(&name) real;                                                   \
    static struct real_function real_function = {(void**)&real, #name, its_version}; \
    static struct real_function* in_section __attribute__((section("heddle_real"), used)) = &real_function;

#define REAL(name)        \
    REAL_WITH(name, NULL) \
    if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);
/* Where an older version goes by the same name, which dlsym would find. */
#define REAL_VERSION(name, version) \
    REAL_WITH(name, version)        \
    if (real == NULL) real = (__typeof__(&name))real_versioned(#name, version);

#endif
