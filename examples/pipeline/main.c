/* A writer and its readers, without a barrier between two versions: rank 0 puts a table again and again, and
 * the others add up what is in it. A put says how many are to read it, so the next one waits for them; with
 * --ahead K the writer, and the fastest reader, run up to K versions ahead of the slowest reader.
 *
 *     heddle memory launch -n 3 -- pipeline --versions 1000 --ahead 4 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heddle/memory.h"

enum { kCells = 512 };

static int fail(const char* what) {
    fprintf(stderr, "pipeline: %s: %s\n", what, heddle_memory_error_message());
    return 1;
}

static int write_versions(heddle_memory_client_t* client, heddle_memory_cache_t cache,
                          heddle_memory_global_t table, uint64_t versions, uint32_t readers, uint32_t ahead) {
    for (uint64_t version = 1; version <= versions; ++version) {
        heddle_memory_operation_t put = {.kind = HEDDLE_MEMORY_PUT,
                                         .global = table,
                                         .has_tag = true,
                                         .tag = version,
                                         .release = true,
                                         .readers = readers,
                                         .retain = ahead};
        if (heddle_memory_allocate_local(client, table.size, cache, &put.local) != HEDDLE_MEMORY_SUCCESS)
            return fail("no room for the next version");
        uint64_t* cells = heddle_memory_pointer(put.local);
        for (uint64_t i = 0; i < kCells; ++i) cells[i] = version * i;
        if (heddle_memory_execute_sync(client, &put, NULL) != HEDDLE_MEMORY_SUCCESS)
            return fail("cannot put a version");
    }
    return 0;
}

static int read_versions(heddle_memory_client_t* client, heddle_memory_cache_t cache,
                         heddle_memory_global_t table, uint64_t versions, uint32_t rank) {
    uint64_t sum = 0;
    for (uint64_t version = 1; version <= versions; ++version) {
        heddle_memory_operation_t get = {.kind = HEDDLE_MEMORY_GET_CONST,
                                         .global = table,
                                         .cache = cache,
                                         .has_tag = true,
                                         .tag = version};
        heddle_memory_local_t seen;
        if (heddle_memory_execute_sync(client, &get, &seen) != HEDDLE_MEMORY_SUCCESS)
            return fail("cannot get a version");
        const uint64_t* cells = heddle_memory_pointer(seen);
        for (uint64_t i = 0; i < kCells; ++i) sum += cells[i];
        if (heddle_memory_release(client, seen) != HEDDLE_MEMORY_SUCCESS)
            return fail("cannot release a version");
    }
    const uint64_t expected = versions * (versions + 1) / 2 * (kCells * (kCells - 1) / 2);
    printf("rank %u: %llu versions, %s\n", rank, (unsigned long long)versions,
           sum == expected ? "each seen once" : "some missed or seen twice");
    return sum == expected ? 0 : 1;
}

static bool number(const char* text, uint64_t most, uint64_t* value) {
    char* end = NULL;
    *value = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && *value <= most;
}

int main(int count, char** arguments) {
    uint64_t versions = 100, ahead = 0;
    for (int i = 1; i < count; i += 2) {
        uint64_t* const value = strcmp(arguments[i], "--versions") == 0 ? &versions
                                : strcmp(arguments[i], "--ahead") == 0  ? &ahead
                                                                        : NULL;
        if (value == NULL || i + 1 == count || !number(arguments[i + 1], 1000000, value)) {
            fprintf(stderr, "usage: pipeline [--versions N] [--ahead K]\n");
            return 2;
        }
    }
    heddle_memory_server_t* server = heddle_memory_server_create(NULL);
    heddle_memory_client_t* client = server == NULL ? NULL : heddle_memory_client_create(server);
    if (client == NULL) return fail("no server");
    uint32_t rank = 0, ranks = 1;
    heddle_memory_segment_t segment;
    heddle_memory_cache_t cache;
    heddle_memory_global_t table = {0, 0, kCells * sizeof(uint64_t)};
    if (heddle_memory_server_rank(server, &rank, &ranks) != HEDDLE_MEMORY_SUCCESS ||
        heddle_memory_collective_segment_create(server, (ahead + 1) * table.size + (ahead + 1) * ranks, "shm",
                                                NULL, 0, &segment) != HEDDLE_MEMORY_SUCCESS ||
        heddle_memory_collective_allocate(server, table.size, segment, NULL, &table.data) !=
            HEDDLE_MEMORY_SUCCESS ||
        heddle_memory_cache_create(client, 2 * table.size, &cache) != HEDDLE_MEMORY_SUCCESS)
        return fail("no memory to share");
    const int ended = rank == 0 ? write_versions(client, cache, table, versions, ranks - 1, (uint32_t)ahead)
                                : read_versions(client, cache, table, versions, rank);
    if (heddle_memory_barrier(server) != HEDDLE_MEMORY_SUCCESS) return fail("a rank is gone");
    return ended;
}
