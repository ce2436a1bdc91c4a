// The boxes of streams.vs_front: the same file for `heddle snet run` and for S-Net's FRONT, whose C4SNet.h is
// the one that is included.
#include "stream_boxes.h"

#include <C4SNet.h>

void* many(void* hnd, int n) {
    for (; n > 1; --n) C4SNetOut(hnd, 1, 0);
    C4SNetOut(hnd, 2, 0, 0);
    return hnd;
}

void* add(void* hnd, int x) {
    C4SNetOut(hnd, 1, x + 1);
    return hnd;
}

void* last(void* hnd, int x, int e) {
    C4SNetOut(hnd, 1, x + e);
    return hnd;
}

void* another(void* hnd, int x) {
    (void)x;
    return hnd;
}
