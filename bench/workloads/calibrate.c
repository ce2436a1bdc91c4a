// calibrate: prints how many iterations of compute() fit into a microsecond on a core of its own.
#include <inttypes.h>
#include <stdio.h>

#include "work.h"

int main(void) {
    printf("{\"iterations_per_us\":%" PRIu64 "}\n", calibrate());
    return 0;
}
