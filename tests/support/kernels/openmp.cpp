#include "support/kernels/in_parallel.hpp"

extern "C" __attribute__((visibility("default"))) void in_parallel(int items, void (*body)(void*, int),
                                                                   void* argument) {
#pragma omp parallel for schedule(static, 1)
    for (int item = 0; item < items; ++item) body(argument, item);
}
