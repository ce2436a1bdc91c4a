/* C4SNet: boxes of S-Net written in C, as the S-Net run-time system has them (seed 002).
 *
 *     void *scale(void *hnd, c4snet_data_t *picture, int factor) {   // box scale ((picture, <factor>) ->
 * (picture))
 *         ...
 *         C4SNetOut(hnd, 1, picture);
 *         return hnd;
 *     }
 *
 * A box gets its arguments in the order of its signature: fields as c4snet_data_t *, tags as int. It owns the
 * fields it gets: each is to be freed or sent on. It may be called for several records at once, in any
 * thread, and the handle is for the thread of its call.
 *
 * A file may say what its functions take, so that one that does not fit its box is refused when it is loaded,
 * and the compiler sees that the function is as it says:
 *
 *     C4SNET_BOX(scale, c4snet_data_t *, int)
 *
 * Data are counted references to a value (size 1) or an array of one type; what several hold is not to be
 * written. A call that gets NULL, or has no memory, gives NULL or 0.
 */
#ifndef C4SNET_H
#define C4SNET_H

#include <stddef.h>

#include "../export.hpp"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cdata c4snet_data_t;

typedef enum {
    CTYPE_uchar,
    CTYPE_char,
    CTYPE_ushort,
    CTYPE_short,
    CTYPE_uint,
    CTYPE_int,
    CTYPE_ulong,
    CTYPE_long,
    CTYPE_float,
    CTYPE_double,
    CTYPE_ldouble,
    CTYPE_pointer
} c4snet_type_t;

/* Of `size` elements that are not set yet; *data is where they are. */
HEDDLE_API c4snet_data_t* C4SNetAlloc(c4snet_type_t type, size_t size, void** data);
/* With a copy of `size` elements. */
HEDDLE_API c4snet_data_t* C4SNetCreate(c4snet_type_t type, size_t size, const void* data);
/* One reference less. */
HEDDLE_API void C4SNetFree(c4snet_data_t* data);
/* One reference more; gives `data`. */
HEDDLE_API c4snet_data_t* C4SNetShallowCopy(c4snet_data_t* data);
HEDDLE_API c4snet_data_t* C4SNetDeepCopy(c4snet_data_t* data);

/* Of one element, in bytes. */
HEDDLE_API int C4SNetSizeof(c4snet_data_t* data);
HEDDLE_API size_t C4SNetArraySize(c4snet_data_t* data);
HEDDLE_API void* C4SNetGetData(c4snet_data_t* data);
HEDDLE_API c4snet_type_t C4SNetGetType(c4snet_data_t* data);
/* A copy of an array of chars that ends with a zero, for free(); NULL for another type. */
HEDDLE_API char* C4SNetGetString(c4snet_data_t* data);

/* Sends a record of the box's output variant with that number (the first is 1): for each of its labels, in
 * their order, a c4snet_data_t *, which then is the record's, or an int. It may go on when the call is over:
 * a call must not wait for what becomes of it. What is wrong with it fails the record that the box was called
 * for. */
HEDDLE_API void C4SNetOut(void* hnd, int variant, ...);

/* The same, label by label. */
typedef struct container c4snet_container_t;
HEDDLE_API c4snet_container_t* C4SNetContainerCreate(void* hnd, int variant);
HEDDLE_API void C4SNetContainerSetField(c4snet_container_t* container, void* field);
HEDDLE_API void C4SNetContainerSetTag(c4snet_container_t* container, int tag);
HEDDLE_API void C4SNetContainerSetBTag(c4snet_container_t* container, int tag);
/* Sends the record and frees the container. */
HEDDLE_API void C4SNetContainerOut(c4snet_container_t* container);

/* The types of what the box's function takes behind its handle; outside of functions, before it or behind. */
#ifdef __cplusplus
#define C4SNET_BOX(box, ...)                                                         \
    extern "C" void* box(void* hnd __VA_OPT__(, ) __VA_ARGS__);                      \
    extern "C" __attribute__((visibility("default"))) const char c4snet_box_##box[]; \
    const char c4snet_box_##box[] = #__VA_ARGS__;
#else
#define C4SNET_BOX(box, ...)                                                     \
    void* box(void* hnd, ##__VA_ARGS__);                                         \
    extern __attribute__((visibility("default"))) const char c4snet_box_##box[]; \
    const char c4snet_box_##box[] = #__VA_ARGS__;
#endif

#ifdef __cplusplus
}
#endif

#endif
