#include <C4SNet.h>

#include <algorithm>

C4SNET_BOX(plus, int, c4snet_data_t*)

void* plus(void* hnd, int a, c4snet_data_t* text) {
    C4SNetOut(hnd, 1, std::max(a, 0) + 1, text);
    return hnd;
}
