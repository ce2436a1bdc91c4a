/* For C tests: calls a test with the name of each engine that is there, which `tested_engine` is meanwhile,
 * and says why the others are not. */
#ifndef HEDDLE_TESTS_COMPAT_AVAILABLE_ENGINES_H
#define HEDDLE_TESTS_COMPAT_AVAILABLE_ENGINES_H

#include "expect.h"

static void for_each_available_engine(void (*test)(const char* name)) {
    heddle_engine_t engines[16];
    const size_t count = heddle_engines(engines, 16);
    EXPECT(count >= 1 && count <= 16);
    for (size_t i = 0; i < count && i < 16; ++i) {
        tested_engine = engines[i].name;
        if (engines[i].available)
            test(tested_engine);
        else
            printf("skipped: %s: %s\n", tested_engine, engines[i].reason);
    }
}

#endif
