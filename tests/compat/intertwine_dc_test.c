/* The tiles of a matrix in global memory, as figures 16 and 17 of seed 001 get and flush them. */
#include <intertwine_dc.h>
#include <stdlib.h>

#define HEDDLE_EXPECT_ERROR_MESSAGE heddle_memory_error_message()
#include "expect.h"

enum { TILES = 4, TILE = 16, PlasmaDescR = 1, PlasmaDescW = 2, PlasmaDescRw = 3 };

typedef struct {
    int access_mode;
    intertwine_dc_global_data_t global_matrix;
    intertwine_dc_local_data_t** tile_dc_handles;
} plasma_desc_t;

static void* data_of_key(plasma_desc_t* descA, size_t key) {
    size_t tile_size = TILE * sizeof(double);
    size_t offset = key * tile_size;
    int is_const = 0;
    if (descA->access_mode == PlasmaDescR) {
        is_const = 1;
    }
    EXPECT(intertwine_dc_get(is_const, descA->global_matrix, tile_size, offset,
                             (descA->tile_dc_handles)[key]) == 0);
    return intertwine_dc_local_data_get_pointer(*(descA->tile_dc_handles)[key]);
}

static void plasma_desc_flush_dc_data(plasma_desc_t* A) {
    for (size_t index = 0; index < TILES; ++index) {
        if (A->access_mode == PlasmaDescW || A->access_mode == PlasmaDescRw) {
            size_t tile_size = TILE * sizeof(double);
            size_t offset = index * tile_size;
            EXPECT(intertwine_dc_put(*((A->tile_dc_handles)[index]), A->global_matrix, tile_size, offset) ==
                   0);
        }
        EXPECT(intertwine_dc_delete_local_data(*((A->tile_dc_handles)[index])) == 0);
        EXPECT(intertwine_dc_delete_local_data(*((A->tile_dc_handles)[index])) == HEDDLE_MEMORY_UNKNOWN);
    }
}

int main(void) {
    const size_t size = TILES * TILE * sizeof(double);
    heddle_memory_server_t* server = heddle_memory_server_create(NULL);
    heddle_memory_segment_t segment;
    intertwine_dc_global_data_t matrix = {heddle_memory_client_create(server), 0, 0};
    EXPECT(heddle_memory_segment_create(matrix.client, size, NULL, NULL, 0, &segment) == 0);
    EXPECT(heddle_memory_allocate(matrix.client, size, segment, NULL, &matrix.data) == 0);
    EXPECT(heddle_memory_cache_create(matrix.client, size, &matrix.cache) == 0);
    intertwine_dc_local_data_t tiles[TILES], *handles[TILES];
    for (size_t i = 0; i < TILES; ++i) handles[i] = &tiles[i];

    plasma_desc_t A = {PlasmaDescRw, matrix, handles};
    for (int round = 1; round <= 3; ++round) {
        for (size_t key = 0; key < TILES; ++key) {
            double* tile = data_of_key(&A, key);
            for (size_t i = 0; i < TILE; ++i) tile[i] += (double)(key + 1);
        }
        plasma_desc_flush_dc_data(&A);
    }
    A.access_mode = PlasmaDescR;
    for (size_t key = 0; key < TILES; ++key) {
        const double* tile = data_of_key(&A, key);
        for (size_t i = 0; i < TILE; ++i) EXPECT(tile[i] == 3.0 * (double)(key + 1));
    }

    intertwine_dc_local_data_t none;
    EXPECT(intertwine_dc_get(1, matrix, size, 8, &none) == HEDDLE_MEMORY_OUTSIDE);
    EXPECT(intertwine_dc_local_data_get_pointer(none) == NULL);
    EXPECT(intertwine_dc_get(0, matrix, 8, 0, &none) == HEDDLE_MEMORY_CACHE_FULL);
    EXPECT(intertwine_dc_get(1, matrix, size, 8, NULL) == HEDDLE_MEMORY_INVALID);
    EXPECT(intertwine_dc_put(tiles[0], matrix, size, 0) == HEDDLE_MEMORY_OUTSIDE);
    EXPECT(intertwine_dc_put(none, matrix, 8, 0) == HEDDLE_MEMORY_UNKNOWN);
    plasma_desc_flush_dc_data(&A);
    EXPECT(heddle_memory_client_destroy(matrix.client) == 0 && heddle_memory_server_destroy(server) == 0);
    return failures == 0 ? 0 : 1;
}
