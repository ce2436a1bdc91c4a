/* Objects as they are unloaded: what is known of their addresses is of no use any more. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "callers.h"
#include "export.h"
#include "real.h"

HEDDLE_EXPORT int dlclose(void* handle) {
    REAL(dlclose)
    const int failure = real(handle);
    callers_forget_unloaded();
    return failure;
}
