#include <C4SNet.h>

void* two(void* hnd, int n) {
    C4SNetOut(hnd, 2 - (n == 0) * 4, n);
    return hnd;
}
