#include <C4SNet.h>

static int value(c4snet_data_t* data) {
    const int found = *(int*)C4SNetGetData(data);
    C4SNetFree(data);
    return found;
}
static c4snet_data_t* data(int value) {
    return C4SNetCreate(CTYPE_int, 1, &value);
}

void* one(void* hnd, int x) {
    C4SNetOut(hnd, 1, x + 1);
    return hnd;
}
void* two(void* hnd, int y, c4snet_data_t* a) {
    C4SNetOut(hnd, 1, data(value(a) + 10 * y), y + 2);
    return hnd;
}
void* three(void* hnd, c4snet_data_t* b, int z, c4snet_data_t* a) {
    const int was = value(b);
    C4SNetOut(hnd, 1, z - was, data(was * z), a);
    return hnd;
}
void* four(void* hnd, int x, c4snet_data_t* c, int y, c4snet_data_t* b) {
    C4SNetOut(hnd, 1, data(value(c) - x), data(value(b) - y), x + 3, y + 4);
    return hnd;
}
void* five(void* hnd, c4snet_data_t* a, int x, int y, c4snet_data_t* b, int z) {
    C4SNetOut(hnd, 1, data(value(a) + x), data(value(b) * y), z + x * y);
    return hnd;
}
void* six(void* hnd, int z, c4snet_data_t* a, int y, c4snet_data_t* b, int x, c4snet_data_t* c) {
    C4SNetOut(hnd, 1, data(value(c) + 1000 * z), x + 100 * y, data(value(b) + 7), y - z, data(value(a) - 5),
              z);
    return hnd;
}
