/* The directory/cache from C: what works, and what is refused. */
#define _GNU_SOURCE
#include "heddle/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEDDLE_EXPECT_ERROR_MESSAGE heddle_memory_error_message()
#include "expect.h"

#define SIZE 1000

static heddle_memory_server_t* server;
static heddle_memory_client_t* client;
static heddle_memory_segment_t segment;
static heddle_memory_cache_t cache;

static heddle_memory_data_t allocated(uint64_t size) {
    heddle_memory_data_t data = 0;
    EXPECT(heddle_memory_allocate(client, size, segment, NULL, &data) == HEDDLE_MEMORY_SUCCESS);
    return data;
}

static void test_put_and_get(void) {
    const heddle_memory_global_t all = {allocated(SIZE), 0, SIZE};
    heddle_memory_local_t own, copy;
    EXPECT(heddle_memory_allocate_local(client, SIZE, cache, &own) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(own.writable && own.size == SIZE && own.cache == cache);
    memset(heddle_memory_pointer(own), 'x', SIZE);
    EXPECT(heddle_memory_put_and_release(client, own, all) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_release(client, own) == HEDDLE_MEMORY_UNKNOWN);
    EXPECT(heddle_memory_get_const(client, all, cache, &copy) == HEDDLE_MEMORY_SUCCESS && !copy.writable);
    EXPECT(((const char*)heddle_memory_pointer(copy))[SIZE - 1] == 'x');
    EXPECT(heddle_memory_release(client, copy) == HEDDLE_MEMORY_SUCCESS);
    /* A part of a copy of one's own. */
    EXPECT(heddle_memory_get_mutable(client, all, cache, &own) == HEDDLE_MEMORY_SUCCESS);
    heddle_memory_local_t part = own;
    part.offset += 10;
    part.size = 3;
    memcpy(heddle_memory_pointer(part), "abc", 3);
    const heddle_memory_global_t three = {all.data, 500, 3};
    EXPECT(heddle_memory_put(client, part, three) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_release(client, own) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_get_exclusive(client, three, cache, &own) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(memcmp(heddle_memory_pointer(own), "abc", 3) == 0);
    EXPECT(heddle_memory_release(client, own) == HEDDLE_MEMORY_SUCCESS);
    heddle_memory_statistics_t statistics;
    EXPECT(heddle_memory_cache_statistics(client, cache, &statistics) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(statistics.size == 4 * SIZE && statistics.hits == 2);
    const char* counters = heddle_memory_counters(server);
    EXPECT(counters != NULL && strstr(counters, "\"links\":[{") != NULL &&
           strstr(counters, "\"kind\":\"shm\"") != NULL);
    EXPECT(heddle_memory_free(client, all.data) == HEDDLE_MEMORY_SUCCESS);
}

static void test_operations(void) {
    heddle_memory_data_t data;
    EXPECT(heddle_memory_allocate_filled(client, "0123456789", 10, segment, "prefix_filled", &data) ==
           HEDDLE_MEMORY_SUCCESS);
    heddle_memory_operation_t get = {.kind = HEDDLE_MEMORY_GET_CONST, .global = {data, 2, 3}, .cache = cache};
    heddle_memory_operation_t two[2] = {get, {.kind = HEDDLE_MEMORY_ALLOCATE, .size = 5, .cache = cache}};
    heddle_memory_local_t got[2];
    EXPECT(heddle_memory_execute_batch(client, two, 2, got) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(memcmp(heddle_memory_pointer(got[0]), "234", 3) == 0 && got[1].size == 5);
    EXPECT(heddle_memory_release(client, got[0]) == HEDDLE_MEMORY_SUCCESS);
    /* A future, of a get that waits for the tag. */
    get.has_tag = true;
    get.tag = 7;
    heddle_memory_future_t* future = heddle_memory_execute(client, &get);
    bool ready = true;
    EXPECT(heddle_memory_future_is_ready(future, &ready) == HEDDLE_MEMORY_SUCCESS && !ready);
    heddle_memory_operation_t put = {.kind = HEDDLE_MEMORY_PUT,
                                     .global = {data, 0, 5},
                                     .local = got[1],
                                     .has_tag = true,
                                     .tag = 7,
                                     .release = true,
                                     .readers = 1};
    memcpy(heddle_memory_pointer(got[1]), "abcde", 5);
    EXPECT(heddle_memory_execute_sync(client, &put, NULL) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_client_destroy(client) == HEDDLE_MEMORY_INVALID);
    EXPECT_SAID("has futures");
    EXPECT(heddle_memory_future_get(future, &got[0]) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(memcmp(heddle_memory_pointer(got[0]), "cde", 3) == 0);
    EXPECT(heddle_memory_future_get(future, &got[0]) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_release(client, got[0]) == HEDDLE_MEMORY_SUCCESS);
    get.global.offset = 9;
    future = heddle_memory_execute(client, &get);
    EXPECT(heddle_memory_future_get(future, &got[0]) == HEDDLE_MEMORY_OUTSIDE);
    put.local.id = 0;
    EXPECT(heddle_memory_execute_sync(client, &put, NULL) == HEDDLE_MEMORY_UNKNOWN);
    /* Versions that are there at once, and who reads them. */
    EXPECT(heddle_memory_register_reader(client, put.global) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_unregister_reader(client, put.global) == HEDDLE_MEMORY_SUCCESS);
    put.global.offset = 9;
    EXPECT(heddle_memory_register_reader(client, put.global) == HEDDLE_MEMORY_OUTSIDE);
    EXPECT(heddle_memory_reserve_versions(client, data, 1) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_reserve_versions(client, data, 60000) == HEDDLE_MEMORY_SEGMENT_FULL);
    EXPECT_SAID("retain fewer, or create a larger segment");
    get = (heddle_memory_operation_t){
        .kind = HEDDLE_MEMORY_GET_MUTABLE, .global = {data, 0, 5}, .cache = cache, .prefer_direct = true};
    EXPECT(heddle_memory_execute_sync(client, &get, &got[0]) == HEDDLE_MEMORY_SUCCESS && got[0].cache == 0);
    EXPECT(heddle_memory_release(client, got[0]) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_free(client, data) == HEDDLE_MEMORY_SUCCESS);
}

struct bunch {
    size_t results, errors;
    heddle_memory_ret_t code;
    char message[100];
};
static void bunch_succeeds(const heddle_memory_local_t* results, size_t count, void* data) {
    struct bunch* bunch = data;
    bunch->results = count;
    for (size_t i = 0; i < count; ++i) EXPECT(results[i].size == 8);
}
static void bunch_fails(const heddle_memory_bunch_error_t* errors, size_t count, bool may_have_written,
                        void* data) {
    struct bunch* bunch = data;
    EXPECT(!may_have_written && errors[0].operation == 1);
    bunch->errors = count;
    bunch->code = errors[0].code;
    snprintf(bunch->message, sizeof bunch->message, "%s", errors[0].message);
}

static void test_bunches(void) {
    struct bunch bunch = {0};
    heddle_memory_operation_t two[2] = {{.kind = HEDDLE_MEMORY_ALLOCATE, .size = 8, .cache = cache},
                                        {.kind = HEDDLE_MEMORY_ALLOCATE, .size = 8, .cache = cache}};
    EXPECT(heddle_memory_execute_bunch(client, two, 2, bunch_succeeds, bunch_fails, &bunch) ==
           HEDDLE_MEMORY_SUCCESS);
    EXPECT(bunch.results == 2 && bunch.errors == 0);
    two[1].size = 5 * SIZE;
    EXPECT(heddle_memory_execute_bunch(client, two, 2, bunch_succeeds, bunch_fails, &bunch) ==
           HEDDLE_MEMORY_SUCCESS);
    EXPECT(bunch.errors == 1 && bunch.code == HEDDLE_MEMORY_LARGER_THAN_CACHE);
    EXPECT(strstr(bunch.message, "never fit") != NULL);
    EXPECT(heddle_memory_execute_bunch(client, two, 2, NULL, bunch_fails, &bunch) == HEDDLE_MEMORY_INVALID);
}

/* Blocks of `*data` bytes in turn. */
static int64_t in_blocks(uint64_t size, const uint64_t* free_bytes, uint32_t ranks,
                         heddle_memory_share_t* shares, size_t room, void* data) {
    const int64_t block = *(const int64_t*)data;
    EXPECT(free_bytes[0] >= size);
    if (block < 0) return -1;
    int64_t count = 0;
    for (int64_t left = (int64_t)size; left > 0; left -= block, ++count)
        if ((size_t)count < room)
            shares[count] = (heddle_memory_share_t){(uint32_t)count % ranks, left < block ? left : block};
    return count;
}
static int64_t in_debt(uint64_t size, const uint64_t* free_bytes, uint32_t ranks,
                       heddle_memory_share_t* shares, size_t room, void* data) {
    (void)free_bytes, (void)ranks, (void)room, (void)data;
    shares[0] = (heddle_memory_share_t){0, -(int64_t)size};
    return 1;
}

static int64_t in_countless(uint64_t size, const uint64_t* free_bytes, uint32_t ranks,
                            heddle_memory_share_t* shares, size_t room, void* data) {
    (void)size, (void)free_bytes, (void)ranks, (void)shares, (void)room, (void)data;
    return INT64_MAX;
}

static void test_distributions(void) {
    int64_t block = 7;
    heddle_memory_data_t data = 0;
    uint64_t before = 0, after = 0;
    EXPECT(heddle_memory_register_distribution("blocks", in_blocks, &block) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_register_distribution("blocks", in_blocks, &block) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_register_distribution("debt", in_debt, NULL) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_register_distribution("none", NULL, NULL) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_register_distribution(NULL, in_debt, NULL) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_free_bytes(client, segment, &before, 1) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_allocate(client, 100, segment, "blocks", &data) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_free_bytes(client, segment, &after, 1) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(before - after == 100);
    EXPECT(heddle_memory_free(client, data) == HEDDLE_MEMORY_SUCCESS);
    block = -1;
    EXPECT(heddle_memory_allocate(client, 100, segment, "blocks", &data) == HEDDLE_MEMORY_INVALID);
    EXPECT_SAID("\"blocks\" has failed");
    EXPECT(heddle_memory_allocate(client, 100, segment, "debt", &data) == HEDDLE_MEMORY_INVALID);
    EXPECT_SAID("negative");
    EXPECT(heddle_memory_register_distribution("dust", in_countless, NULL) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_allocate(client, 100, segment, "dust", &data) == HEDDLE_MEMORY_LIMIT);
    EXPECT_SAID("\"dust\" has 9223372036854775807 shares");
    EXPECT(heddle_memory_unregister_distribution("dust") == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_allocate(client, 100, segment, "hilbert", &data) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_unregister_distribution("blocks") == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_unregister_distribution("blocks") == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_unregister_distribution("debt") == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_unregister_distribution(NULL) == HEDDLE_MEMORY_INVALID);
}

static void count_copies(const heddle_memory_locality_t* piece, void* data) {
    EXPECT(piece->home == 0 && piece->range.size == SIZE);
    *(size_t*)data += piece->copy_count;
}

static void test_costs(void) {
    heddle_memory_data_t data = 0;
    EXPECT(heddle_memory_allocate(client, SIZE, segment, NULL, &data) == HEDDLE_MEMORY_SUCCESS);
    const heddle_memory_global_t all = {data, 0, SIZE};
    const heddle_memory_operation_t get = {.kind = HEDDLE_MEMORY_GET_CONST, .global = all, .cache = cache};
    heddle_memory_cost_t cost = {9, -1};
    size_t ranks = 0, copies = 0;
    EXPECT(heddle_memory_transfer_costs(client, &get, 1, &cost, 1, &ranks) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(ranks == 1 && cost.rank == 0 && cost.seconds > 0);
    EXPECT(heddle_memory_data_locality(client, &all, 1, count_copies, &copies) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(copies == 0);
    heddle_memory_local_t copy;
    EXPECT(heddle_memory_get_const(client, all, cache, &copy) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_transfer_costs(client, &get, 1, &cost, 1, &ranks) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(cost.seconds == 0);
    EXPECT(heddle_memory_data_locality(client, &all, 1, count_copies, &copies) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(copies == 1);
    EXPECT(heddle_memory_release(client, copy) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_transfer_costs(client, &get, 1, NULL, 0, &ranks) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_transfer_costs(client, &get, 1, NULL, 1, &ranks) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_data_locality(client, &all, 1, NULL, NULL) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_free(client, data) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_transfer_costs(client, &get, 1, &cost, 1, &ranks) == HEDDLE_MEMORY_UNKNOWN);
}

static void note_data(const heddle_memory_restored_t* one, void* data) {
    if (!one->is_segment) *(heddle_memory_data_t*)data = one->now;
}

static void test_checkpoint(void) {
    char path[] = "/tmp/heddle-checkpoint-XXXXXX";
    const int file = mkstemp(path);
    EXPECT(file >= 0);
    heddle_memory_data_t data = 0, there = 0;
    const char text[] = "what is kept";
    EXPECT(heddle_memory_allocate_filled(client, text, sizeof text, segment, NULL, &data) ==
           HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_checkpoint(client, path, &segment, 1) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_free(client, data) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_restore(client, path, "shm", NULL, 0, "prefix_filled", note_data, &there) ==
           HEDDLE_MEMORY_SUCCESS);
    heddle_memory_local_t copy;
    const heddle_memory_global_t all = {there, 0, sizeof text};
    EXPECT(heddle_memory_get_const(client, all, cache, &copy) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(strcmp(heddle_memory_pointer(copy), text) == 0);
    EXPECT(heddle_memory_release(client, copy) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_free(client, there) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(truncate(path, 50) == 0);
    EXPECT(heddle_memory_restore(client, path, NULL, NULL, 0, NULL, note_data, &there) ==
           HEDDLE_MEMORY_INVALID);
    EXPECT_SAID("it was cut");
    EXPECT(heddle_memory_restore(client, path, NULL, NULL, 0, NULL, NULL, NULL) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_restore(client, NULL, NULL, NULL, 0, NULL, note_data, NULL) ==
           HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_checkpoint(client, "/no/folder/file", NULL, 0) == HEDDLE_MEMORY_SYSTEM);
    EXPECT(heddle_memory_checkpoint(client, path, NULL, 2) == HEDDLE_MEMORY_INVALID);
    close(file);
    unlink(path);
}

static void test_collective(void) {
    heddle_memory_segment_t own = 0;
    heddle_memory_data_t data = 0;
    char text[4] = "abc";
    EXPECT(heddle_memory_barrier(server) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_broadcast(server, text, sizeof text, 0) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(strcmp(text, "abc") == 0);
    EXPECT(heddle_memory_broadcast(server, text, sizeof text, 1) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_collective_segment_create(server, 10, NULL, NULL, 0, &own) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_collective_allocate(server, 11, own, NULL, &data) == HEDDLE_MEMORY_SEGMENT_FULL);
    EXPECT(heddle_memory_collective_allocate(server, 10, own, NULL, &data) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_collective_segment_delete(server, own) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_collective_free(server, data) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_collective_segment_delete(server, own) == HEDDLE_MEMORY_SUCCESS);
}

/* A client in another process, which was there before this one had threads. */
struct other {
    pid_t pid;
    int tell, hear;
};
struct told {
    char path[100];
    heddle_memory_data_t data;
    heddle_memory_cache_t cache;
};

static int be_the_other(int hear, int tell) {
    struct told told;
    if (read(hear, &told, sizeof told) != (ssize_t)sizeof told) return 3;
    heddle_memory_client_t* const own = heddle_memory_client_connect(told.path);
    EXPECT(own != NULL);
    const heddle_memory_global_t all = {told.data, 0, 5};
    heddle_memory_local_t got;
    EXPECT(heddle_memory_get_const(own, all, told.cache, &got) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(memcmp(heddle_memory_pointer(got), "heddl", 5) == 0);
    EXPECT(heddle_memory_release(own, got) == HEDDLE_MEMORY_SUCCESS);
    heddle_memory_statistics_t statistics = {0};
    EXPECT(heddle_memory_cache_statistics(own, told.cache, &statistics) == HEDDLE_MEMORY_SUCCESS &&
           statistics.hits == 1);
    EXPECT(write(tell, "1", 1) == 1);
    /* The server goes. */
    char end;
    EXPECT(read(hear, &end, 1) == 0);
    EXPECT(heddle_memory_get_const(own, all, told.cache, &got) == HEDDLE_MEMORY_UNAVAILABLE);
    EXPECT(heddle_memory_client_destroy(own) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_client_connect(told.path) == NULL &&
           heddle_memory_error() == HEDDLE_MEMORY_UNAVAILABLE);
    return failures == 0 ? 0 : 1;
}

static struct other start_the_other(void) {
    int there[2], back[2];
    EXPECT(pipe(there) == 0 && pipe(back) == 0);
    const struct other made = {fork(), there[1], back[0]};
    if (made.pid == 0) {
        close(there[1]);
        close(back[0]);
        _exit(be_the_other(there[0], back[1]));
    }
    close(there[0]);
    close(back[1]);
    return made;
}

static char folder[] = "/tmp/heddle-memory-XXXXXX";

static void test_other_process(const struct other* other) {
    struct told told = {.cache = 0};
    EXPECT(mkdtemp(folder) != NULL);
    snprintf(told.path, sizeof told.path, "%s/socket", folder);
    EXPECT(heddle_memory_server_listen(server, told.path) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_server_listen(server, told.path) == HEDDLE_MEMORY_INVALID);
    EXPECT_SAID("listens already");
    EXPECT(heddle_memory_allocate_filled(client, "heddl", 5, segment, NULL, &told.data) ==
           HEDDLE_MEMORY_SUCCESS);
    heddle_memory_cache_options_t options = {.shareable = true, .numa_node = -2};
    EXPECT(heddle_memory_cache_create_with(client, 100, &options, &told.cache) == HEDDLE_MEMORY_INVALID);
    EXPECT_SAID("no NUMA node -2");
    options.numa_node = -1;
    EXPECT(heddle_memory_cache_create_with(client, 100, &options, &told.cache) == HEDDLE_MEMORY_SUCCESS);
    /* What this one has got the other one finds. */
    const heddle_memory_global_t all = {told.data, 0, 5};
    heddle_memory_local_t got;
    EXPECT(heddle_memory_get_const(client, all, told.cache, &got) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_release(client, got) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(write(other->tell, &told, sizeof told) == (ssize_t)sizeof told);
    char done = 0;
    EXPECT(read(other->hear, &done, 1) == 1);
}

static void end_the_other(const struct other* other) {
    int status = 0;
    close(other->tell);
    EXPECT(waitpid(other->pid, &status, 0) == other->pid && status == 0);
    EXPECT(rmdir(folder) == 0);
}

static void test_misuse(void) {
    heddle_memory_local_t local = {0};
    heddle_memory_data_t data = allocated(8);
    const heddle_memory_global_t all = {data, 0, 8}, beyond = {data, 1, 8}, nowhere = {999, 0, 1};
    EXPECT(heddle_memory_client_create(NULL) == NULL && heddle_memory_error() == HEDDLE_MEMORY_INVALID);
    EXPECT_SAID("this is no server");
    EXPECT(heddle_memory_get_const(NULL, all, cache, &local) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_get_const(client, all, cache, NULL) == HEDDLE_MEMORY_INVALID);
    EXPECT_SAID("nowhere to put the local range");
    EXPECT(heddle_memory_get_const(client, all, 12345, &local) == HEDDLE_MEMORY_UNKNOWN);
    EXPECT(heddle_memory_get_const(client, beyond, cache, &local) == HEDDLE_MEMORY_OUTSIDE);
    EXPECT(heddle_memory_get_const(client, nowhere, cache, &local) == HEDDLE_MEMORY_UNKNOWN);
    EXPECT(heddle_memory_allocate_local(client, 4 * SIZE + 1, cache, &local) ==
           HEDDLE_MEMORY_LARGER_THAN_CACHE);
    EXPECT(heddle_memory_pointer(local) == NULL);
    EXPECT(heddle_memory_allocate_local(client, 4 * SIZE - 24, cache, &local) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_get_const(client, all, cache, &local) == HEDDLE_MEMORY_SUCCESS);
    heddle_memory_local_t more;
    EXPECT(heddle_memory_allocate_local(client, 9, cache, &more) == HEDDLE_MEMORY_CACHE_FULL);
    EXPECT(heddle_memory_put(client, local, (heddle_memory_global_t){data, 0, 7}) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_cache_delete(client, cache) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_allocate(client, 8, segment, NULL, NULL) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_allocate_filled(client, NULL, 8, segment, NULL, &data) == HEDDLE_MEMORY_INVALID);
    heddle_memory_operation_t odd = {.kind = (heddle_memory_kind_t)77};
    EXPECT(heddle_memory_execute_sync(client, &odd, &local) == HEDDLE_MEMORY_INVALID);
    EXPECT_SAID("no operation of kind 77");
    EXPECT(heddle_memory_execute_sync(client, NULL, &local) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_execute(client, NULL) == NULL);
    EXPECT(heddle_memory_execute_batch(client, NULL, 2, &local) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_future_destroy(NULL) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_counters(NULL) == NULL);
    heddle_memory_segment_t other = 0;
    const heddle_memory_option_t option = {"path", NULL};
    EXPECT(heddle_memory_segment_create(client, 8, "tape", NULL, 0, &other) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_segment_create(client, 8, "file", &option, 1, &other) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_segment_create(client, 8, "file", NULL, 1, &other) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_segment_delete(client, segment) == HEDDLE_MEMORY_INVALID && other == 0);
    const heddle_memory_server_options_t odd_rank = {3, 2, NULL, 1};
    EXPECT(heddle_memory_server_create(&odd_rank) == NULL && heddle_memory_error() == HEDDLE_MEMORY_INVALID);
    EXPECT_SAID("there is no rank 3 of 2");
}

int main(void) {
    const struct other other = start_the_other();
    server = heddle_memory_server_create(NULL);
    client = heddle_memory_client_create(server);
    uint32_t rank = 9, ranks = 9;
    EXPECT(heddle_memory_server_rank(server, &rank, &ranks) == HEDDLE_MEMORY_SUCCESS && rank == 0 &&
           ranks == 1);
    EXPECT(heddle_memory_segment_create(client, 2 * SIZE, "shm", NULL, 0, &segment) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_cache_create(client, 4 * SIZE, &cache) == HEDDLE_MEMORY_SUCCESS);
    test_put_and_get();
    test_operations();
    test_distributions();
    test_costs();
    test_checkpoint();
    test_collective();
    test_bunches();
    test_other_process(&other);
    test_misuse();
    EXPECT(heddle_memory_server_destroy(server) == HEDDLE_MEMORY_INVALID);
    EXPECT_SAID("has clients");
    EXPECT(heddle_memory_client_destroy(client) == HEDDLE_MEMORY_SUCCESS);
    EXPECT(heddle_memory_client_destroy(client) == HEDDLE_MEMORY_INVALID);
    EXPECT(heddle_memory_server_destroy(server) == HEDDLE_MEMORY_SUCCESS);
    end_the_other(&other);
    return failures == 0 ? 0 : 1;
}
