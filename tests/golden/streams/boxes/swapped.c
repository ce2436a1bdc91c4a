#include <C4SNet.h>

void* plus(void* hnd, c4snet_data_t* text, int a) {
    C4SNetOut(hnd, 1, a + 1, text);
    return hnd;
}

C4SNET_BOX(plus, c4snet_data_t*, int)
