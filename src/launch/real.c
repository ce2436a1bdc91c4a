#define _GNU_SOURCE
#include "real.h"

/* The linker's names for the ends of the section that REAL() fills. */
extern struct real_function* __start_heddle_real[] __attribute__((visibility("hidden")));
extern struct real_function* __stop_heddle_real[] __attribute__((visibility("hidden")));

void real_look_up_all(void) {
    for (struct real_function** at = __start_heddle_real; at != __stop_heddle_real; ++at) {
        const struct real_function* one = *at;
        if (*one->place == NULL && one->version != NULL)
            *one->place = dlvsym(RTLD_NEXT, one->name, one->version);
        if (*one->place == NULL) *one->place = dlsym(RTLD_NEXT, one->name);
    }
    /* What this C library does not have is no error of the program's. */
    (void)dlerror();
}
