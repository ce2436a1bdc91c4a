/* The C wrappers of the Directory/Cache of seed 001 section 5.4, over heddle/memory.h.
 *
 * What they work on is made by heddle/memory.h: a client, an allocation and a cache. Any thread may call.
 * Each returns 0, or a negative heddle_memory_ret_t; heddle_memory_error_message() then says what was wrong.
 */
#ifndef HEDDLE_COMPAT_INTERTWINE_DC_H
#define HEDDLE_COMPAT_INTERTWINE_DC_H

#include <stddef.h>
#include <string.h>

#include "heddle/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Global data, and the cache in which copies of parts of it are to be. */
typedef struct {
    heddle_memory_client_t* client;
    heddle_memory_data_t data;
    heddle_memory_cache_t cache;
} intertwine_dc_global_data_t;

/** A copy of a part of global data, until it is deleted. */
typedef struct {
    heddle_memory_client_t* client;
    heddle_memory_local_t local;
} intertwine_dc_local_data_t;

/** get_const_t where `is_const` is not 0, else get_mutable_t; sizes and offsets in bytes. Where it fails
 * `local` has no address. */
static inline int intertwine_dc_get(int is_const, intertwine_dc_global_data_t global, size_t size,
                                    size_t offset, intertwine_dc_local_data_t* local) {
    const heddle_memory_global_t range = {global.data, offset, size};
    if (local == NULL) return HEDDLE_MEMORY_INVALID;
    memset(local, 0, sizeof *local);
    local->client = global.client;
    return is_const ? heddle_memory_get_const(global.client, range, global.cache, &local->local)
                    : heddle_memory_get_mutable(global.client, range, global.cache, &local->local);
}

/** Of one that is const it is to be read only. NULL: there is none. */
static inline void* intertwine_dc_local_data_get_pointer(intertwine_dc_local_data_t local) {
    return heddle_memory_pointer(local.local);
}

/** put_t of the first `size` bytes. */
static inline int intertwine_dc_put(intertwine_dc_local_data_t local, intertwine_dc_global_data_t global,
                                    size_t size, size_t offset) {
    const heddle_memory_global_t range = {global.data, offset, size};
    /* More than there are is refused where it can be told. */
    local.local.size = size;
    return heddle_memory_put(local.client, local.local, range);
}

/** release_t. */
static inline int intertwine_dc_delete_local_data(intertwine_dc_local_data_t local) {
    return heddle_memory_release(local.client, local.local);
}

#ifdef __cplusplus
}
#endif

#endif
