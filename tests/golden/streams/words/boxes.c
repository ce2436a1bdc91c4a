#include <C4SNet.h>

void* split_words(void* hnd, c4snet_data_t* text) {
    const char* letters = C4SNetGetData(text);
    size_t size = C4SNetArraySize(text), begin = 0;
    for (size_t at = 0; at <= size; ++at) {
        if (at < size && letters[at] != ' ') continue;
        if (at > begin)
            C4SNetOut(hnd, 1, C4SNetCreate(CTYPE_char, at - begin, letters + begin), (int)(at - begin));
        begin = at + 1;
    }
    C4SNetFree(text);
    return hnd;
}
