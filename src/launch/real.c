#define _GNU_SOURCE
#include "real.h"

/* The linker's names for the ends of the section that REAL() fills. */
extern struct real_function* __start_heddle_real[] __attribute__((visibility("hidden")));
extern struct real_function* __stop_heddle_real[] __attribute__((visibility("hidden")));

void* real_versioned(const char* name, const char* version) {
    void* const next = dlsym(RTLD_NEXT, name);
    void* const versioned = dlvsym(RTLD_NEXT, name, version);
    Dl_info nexts, versions;
    if (next == NULL || versioned == NULL) return next != NULL ? next : versioned;
    if (dladdr(next, &nexts) == 0 || dladdr(versioned, &versions) == 0) return versioned;
    return nexts.dli_fbase == versions.dli_fbase ? versioned : next;
}

void real_look_up_all(void) {
    for (struct real_function** at = __start_heddle_real; at != __stop_heddle_real; ++at) {
        const struct real_function* one = *at;
        if (*one->place != NULL) continue;
        *one->place =
            one->version != NULL ? real_versioned(one->name, one->version) : dlsym(RTLD_NEXT, one->name);
    }
    /* What this C library does not have is no error of the program's. */
    (void)dlerror();
}
