#include <oneapi/tbb/parallel_for.h>

#include "support/kernels/in_parallel.hpp"

extern "C" __attribute__((visibility("default"))) void in_parallel(int items, void (*body)(void*, int),
                                                                   void* argument) {
    tbb::parallel_for(0, items, [&](int item) { body(argument, item); });
}
