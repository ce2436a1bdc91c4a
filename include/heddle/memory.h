/* The directory/cache for C: heddle/memory.hpp, which tells more.
 *
 *     heddle_memory_server_t* server = heddle_memory_server_create(NULL);
 *     heddle_memory_client_t* client = heddle_memory_client_create(server);
 *     heddle_memory_segment_create(client, 1 << 20, "shm", NULL, 0, &segment);
 *     heddle_memory_allocate(client, 1000, segment, NULL, &data);
 *     heddle_memory_cache_create(client, 4096, &cache);
 *     heddle_memory_global_t all = {data, 0, 1000};
 *     heddle_memory_allocate_local(client, 1000, cache, &own);
 *     memcpy(heddle_memory_pointer(own), values, 1000);
 *     heddle_memory_put_and_release(client, own, all);
 *     heddle_memory_get_const(client, all, cache, &copy);
 *
 * Any thread may call, tasks too; creating and destroying one thing is for one thread. A handle is a number
 * in a pointer's clothes: it must not be followed, and NULL or a destroyed one is refused. What ends a call
 * is told by its result (a handle's is NULL), and by heddle_memory_error() and heddle_memory_error_message()
 * of the calling thread; nothing is thrown. Where a call fails, what it would have given is untouched. */
#ifndef HEDDLE_MEMORY_H
#define HEDDLE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEDDLE_MEMORY_API __attribute__((visibility("default")))

/* Whatever number comes is looked at, and refused where it is none of them. */
#ifdef __cplusplus
#define HEDDLE_MEMORY_ANY : int
#else
#define HEDDLE_MEMORY_ANY
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_memory_server heddle_memory_server_t;
typedef struct heddle_memory_client heddle_memory_client_t;
typedef struct heddle_memory_future heddle_memory_future_t;

/** What a call came to; negative: it had no effect, but for bunches and batches of operations. */
typedef enum {
    HEDDLE_MEMORY_SUCCESS = 0,
    HEDDLE_MEMORY_INVALID = -1,           /**< an argument that can never be right, a handle that is none */
    HEDDLE_MEMORY_UNAVAILABLE = -2,       /**< something is missing, or a rank is gone */
    HEDDLE_MEMORY_LIMIT = -3,             /**< no memory, or more than there can be */
    HEDDLE_MEMORY_SYSTEM = -4,            /**< the system refused something */
    HEDDLE_MEMORY_UNKNOWN = -5,           /**< no such segment, allocation, cache or local range */
    HEDDLE_MEMORY_OUTSIDE = -6,           /**< beyond the end of its allocation or local range */
    HEDDLE_MEMORY_LARGER_THAN_CACHE = -7, /**< can never fit */
    HEDDLE_MEMORY_CACHE_FULL = -8,        /**< all that is in the cache is in use */
    HEDDLE_MEMORY_SEGMENT_FULL = -9,      /**< the segment has not so many bytes left */
    HEDDLE_MEMORY_TRANSFER = -10,         /**< the segment's transport failed */
    HEDDLE_MEMORY_CANCELLED = -11         /**< the client left, or its bunch failed */
} heddle_memory_ret_t;

/** Of the calling thread's last call that failed. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_error(void);
/** What was wrong and what to do; "" before the first. Valid until the thread's next call that fails. */
HEDDLE_MEMORY_API const char* heddle_memory_error_message(void);

/* Servers and clients. */

typedef struct {
    uint32_t rank, ranks;
    const char* folder; /**< where the ranks find each other; NULL for one rank */
    double patience_s;  /**< how long a rank waits for the others */
} heddle_memory_server_options_t;

/** NULL: as HEDDLE_RANK and HEDDLE_MESH say, else one rank alone. Waits for all ranks. */
HEDDLE_MEMORY_API heddle_memory_server_t* heddle_memory_server_create(
    const heddle_memory_server_options_t* options);
/** `communicator`: one of the program's own, by MPI_Comm_c2f(). Its processes are the ranks, in its order;
   all of them make their servers together. */
HEDDLE_MEMORY_API heddle_memory_server_t* heddle_memory_server_create_of(int communicator, double patience_s);
/** Listens until it is destroyed: for heddle_memory_client_connect() by this user's programs and root's.
   NULL: at HEDDLE_MEMORY, or else the user's usual place. UNAVAILABLE where another program listens there,
   INVALID where this one listens already or the path is too long. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_server_listen(heddle_memory_server_t* server,
                                                                  const char* path);
/** INVALID while it has clients in this process. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_server_destroy(heddle_memory_server_t* server);
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_server_rank(heddle_memory_server_t* server,
                                                                uint32_t* rank, uint32_t* ranks);
/** What it has done, as JSON; see heddle/memory.hpp. Valid until the thread calls it again. */
HEDDLE_MEMORY_API const char* heddle_memory_counters(heddle_memory_server_t* server);

HEDDLE_MEMORY_API heddle_memory_client_t* heddle_memory_client_create(heddle_memory_server_t* server);
/** Of a server in another process, which listens at this path; NULL as there. When that server goes each call
    is UNAVAILABLE, and so it is in a child that is forked later. */
HEDDLE_MEMORY_API heddle_memory_client_t* heddle_memory_client_connect(const char* path);
/** What it holds is released. INVALID while it has futures. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_client_destroy(heddle_memory_client_t* client);

/* Segments, allocations and caches, by numbers; 0 is none. */

typedef uint64_t heddle_memory_segment_t;
typedef uint64_t heddle_memory_data_t;
typedef uint64_t heddle_memory_cache_t;

typedef struct {
    const char *name, *value;
} heddle_memory_option_t;

/** `kind`: NULL for "shm". `options` may be NULL where there are none. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_segment_create(heddle_memory_client_t* client,
                                                                   uint64_t size, const char* kind,
                                                                   const heddle_memory_option_t* options,
                                                                   size_t count,
                                                                   heddle_memory_segment_t* segment);
/** INVALID where there are allocations in it. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_segment_delete(heddle_memory_client_t* client,
                                                                   heddle_memory_segment_t segment);
/** How much is free on each rank: the first `room` of them. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_free_bytes(heddle_memory_client_t* client,
                                                               heddle_memory_segment_t segment,
                                                               uint64_t* free_bytes, size_t room);

/** `distribution`: NULL for "equally_distributed"; "prefix_filled", or a registered one. The bytes are zero,
 * or what an earlier allocation left there. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_allocate(heddle_memory_client_t* client, uint64_t size,
                                                             heddle_memory_segment_t segment,
                                                             const char* distribution,
                                                             heddle_memory_data_t* data);
/** The same, with the `size` bytes at `content` in it. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_allocate_filled(heddle_memory_client_t* client,
                                                                    const void* content, uint64_t size,
                                                                    heddle_memory_segment_t segment,
                                                                    const char* distribution,
                                                                    heddle_memory_data_t* data);
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_free(heddle_memory_client_t* client,
                                                         heddle_memory_data_t data);

/** So many bytes of an allocation, on that rank. */
typedef struct {
    uint32_t rank;
    int64_t size;
} heddle_memory_share_t;

/** How `size` bytes are spread where so much is free on each of `ranks` ranks: writes the first `room` shares
 * and returns how many there are; where those are more than `room` it is called again with room for all.
 * Negative: it cannot say. */
typedef int64_t (*heddle_memory_distribution_t)(uint64_t size, const uint64_t* free_bytes, uint32_t ranks,
                                                heddle_memory_share_t* shares, size_t room, void* data);

/** In this process. `data` goes to each call, and must stay until it is unregistered and nobody allocates by
 * it. INVALID for a name that is taken. */
HEDDLE_MEMORY_API heddle_memory_ret_t
heddle_memory_register_distribution(const char* name, heddle_memory_distribution_t distribution, void* data);
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_unregister_distribution(const char* name);

HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_cache_create(heddle_memory_client_t* client,
                                                                 uint64_t size, heddle_memory_cache_t* cache);
typedef struct {
    bool shareable; /**< clients in other processes can use it, too, by its number */
    int numa_node;  /**< where its memory is to be; -1: anywhere */
} heddle_memory_cache_options_t;
/** `options`: NULL as above. */
HEDDLE_MEMORY_API heddle_memory_ret_t
heddle_memory_cache_create_with(heddle_memory_client_t* client, uint64_t size,
                                const heddle_memory_cache_options_t* options, heddle_memory_cache_t* cache);
/** INVALID where local ranges in it are held. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_cache_delete(heddle_memory_client_t* client,
                                                                 heddle_memory_cache_t cache);

typedef struct {
    uint64_t size, free_bytes, hits, hits_pending, misses, evictions, invalidations;
} heddle_memory_statistics_t;

HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_cache_statistics(heddle_memory_client_t* client,
                                                                     heddle_memory_cache_t cache,
                                                                     heddle_memory_statistics_t* statistics);

/* Ranges. */

/** Some bytes of an allocation, wherever they lie. */
typedef struct {
    heddle_memory_data_t data;
    uint64_t offset, size;
} heddle_memory_global_t;

/** Some bytes at hand. A copy of it names the same bytes; `offset` and `size` of a copy may be changed within
 * it, to put a part. Valid until it is released. */
typedef struct {
    heddle_memory_cache_t cache; /**< 0: in the segment itself */
    uint64_t id;
    char* base;
    uint64_t offset, size;
    bool writable;
} heddle_memory_local_t;

/** Of one that is not writable it is to be read only. */
static inline void* heddle_memory_pointer(heddle_memory_local_t local) {
    return local.base == NULL ? NULL : local.base + local.offset;
}

/* Operations. */

typedef enum HEDDLE_MEMORY_ANY {
    HEDDLE_MEMORY_ALLOCATE,      /**< `size` bytes in `cache`, writable */
    HEDDLE_MEMORY_RELEASE,       /**< `local` */
    HEDDLE_MEMORY_GET_CONST,     /**< a copy of `global` in `cache`, to read */
    HEDDLE_MEMORY_GET_MUTABLE,   /**< a copy of one's own */
    HEDDLE_MEMORY_GET_EXCLUSIVE, /**< the same; nobody else gets or puts it before it is put or released */
    HEDDLE_MEMORY_PUT            /**< `local` to `global` */
} heddle_memory_kind_t;

typedef struct {
    heddle_memory_kind_t kind;
    heddle_memory_global_t global;
    heddle_memory_cache_t cache;
    heddle_memory_local_t local;
    uint64_t size;
    bool has_tag;       /**< of GET_CONST, GET_MUTABLE and PUT */
    uint64_t tag;       /**< what all of the range was to be put with, or is put with */
    bool prefer_direct; /**< of GET_CONST and GET_MUTABLE: in the segment itself where it lies here */
    bool release;       /**< of PUT: `local` is released with it */
    uint32_t readers;   /**< of PUT: writes wait until so many gets with the tag have read it, or retain it */
    uint32_t
        retain; /**< of PUT: so many earlier versions that are still to be read stay; it waits for more */
} heddle_memory_operation_t;

/** Waits. `result` may be NULL for RELEASE and PUT, which give nothing. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_execute_sync(heddle_memory_client_t* client,
                                                                 const heddle_memory_operation_t* operation,
                                                                 heddle_memory_local_t* result);
/** All at once, and waits for all; `results` has room for `count`, those of RELEASE and PUT being zero. Where
 * one fails its error is told, and what the others got is released; puts stay. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_execute_batch(heddle_memory_client_t* client,
                                                                  const heddle_memory_operation_t* operations,
                                                                  size_t count,
                                                                  heddle_memory_local_t* results);

/** Begins an operation. */
HEDDLE_MEMORY_API heddle_memory_future_t* heddle_memory_execute(heddle_memory_client_t* client,
                                                                const heddle_memory_operation_t* operation);
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_future_is_ready(heddle_memory_future_t* future,
                                                                    bool* ready);
/** Waits, and tells what the operation came to; the future is gone then, also where it failed. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_future_get(heddle_memory_future_t* future,
                                                               heddle_memory_local_t* result);
/** The operation goes on; what it gets is released with the client. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_future_destroy(heddle_memory_future_t* future);

typedef struct {
    size_t operation; /**< its place in the bunch */
    heddle_memory_ret_t code;
    const char* message;
} heddle_memory_bunch_error_t;

/** One of the two is called when all have ended, by a thread of the server's or of this client's connection,
 * which has other work, or by one that a call of any client of the server is made in: it should not take
 * long, nor wait for what the function of another bunch does. What is passed is valid during the call. Where
 * one fails, what the others got or allocated is released first; puts stay, which `may_have_written` tells
 * of. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_execute_bunch(
    heddle_memory_client_t* client, const heddle_memory_operation_t* operations, size_t count,
    void (*success)(const heddle_memory_local_t* results, size_t count, void* data),
    void (*failure)(const heddle_memory_bunch_error_t* errors, size_t count, bool may_have_written,
                    void* data),
    void* data);

/* The single operations. */

HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_allocate_local(heddle_memory_client_t* client,
                                                                   uint64_t size, heddle_memory_cache_t cache,
                                                                   heddle_memory_local_t* local);
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_release(heddle_memory_client_t* client,
                                                            heddle_memory_local_t local);
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_get_const(heddle_memory_client_t* client,
                                                              heddle_memory_global_t global,
                                                              heddle_memory_cache_t cache,
                                                              heddle_memory_local_t* local);
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_get_mutable(heddle_memory_client_t* client,
                                                                heddle_memory_global_t global,
                                                                heddle_memory_cache_t cache,
                                                                heddle_memory_local_t* local);
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_get_exclusive(heddle_memory_client_t* client,
                                                                  heddle_memory_global_t global,
                                                                  heddle_memory_cache_t cache,
                                                                  heddle_memory_local_t* local);
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_put(heddle_memory_client_t* client,
                                                        heddle_memory_local_t source,
                                                        heddle_memory_global_t global);
/** Where it fails the range is still held. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_put_and_release(heddle_memory_client_t* client,
                                                                    heddle_memory_local_t source,
                                                                    heddle_memory_global_t global);

/* Readers of what is put for so many; see docs/COHERENCE.md. */

/** So many versions can be there at once from now on, for which room is taken in the segment. A put that
 * retains k does so for k + 1. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_reserve_versions(heddle_memory_client_t* client,
                                                                     heddle_memory_data_t data,
                                                                     uint32_t count);
/** The client is one of those who are to read what is put there: if its process ends before it has, who puts
 * there next is told. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_register_reader(heddle_memory_client_t* client,
                                                                    heddle_memory_global_t global);
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_unregister_reader(heddle_memory_client_t* client,
                                                                      heddle_memory_global_t global);

/* Costs and places; see Client::transfer_costs and Client::data_locality. */

/** What operations would take on a rank. */
typedef struct {
    uint32_t rank;
    double seconds;
} heddle_memory_cost_t;

/** Writes the cheapest ranks first, the first `room` of them; `ranks` gets how many there are. */
HEDDLE_MEMORY_API heddle_memory_ret_t
heddle_memory_transfer_costs(heddle_memory_client_t* client, const heddle_memory_operation_t* operations,
                             size_t count, heddle_memory_cost_t* costs, size_t room, size_t* ranks);

/** Where a piece of a range is: the rank whose memory it is in, and those that have copies of some of it. */
typedef struct {
    heddle_memory_global_t range;
    uint32_t home;
    const uint32_t* copies; /**< valid during the call */
    size_t copy_count;
} heddle_memory_locality_t;

/** Calls the function with each piece of the ranges, in their order, in this thread. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_data_locality(
    heddle_memory_client_t* client, const heddle_memory_global_t* ranges, size_t count,
    void (*each)(const heddle_memory_locality_t* piece, void* data), void* data);

/* Checkpoints; see heddle/memory_checkpoint.hpp. */

/** These segments, or all where `count` is 0, with what is in them, into a file. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_checkpoint(heddle_memory_client_t* client,
                                                               const char* path,
                                                               const heddle_memory_segment_t* segments,
                                                               size_t count);

/** What a segment or an allocation of a checkpoint is now. */
typedef struct {
    bool is_segment;
    uint64_t before, now;
} heddle_memory_restored_t;

/** Creates the segments of a checkpoint and what was in them, and calls the function with each in this
 * thread. `kind` and `distribution`: NULL for what they were. INVALID where the file is none, or was cut or
 * altered: nothing stays then. */
HEDDLE_MEMORY_API heddle_memory_ret_t
heddle_memory_restore(heddle_memory_client_t* client, const char* path, const char* kind,
                      const heddle_memory_option_t* options, size_t count, const char* distribution,
                      void (*each)(const heddle_memory_restored_t* one, void* data), void* data);

/* Calls that all ranks make, each in the same order, by one thread a rank: rank 0 does it, and all get what
 * it came to. */

/** Returns when all ranks have called it. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_barrier(heddle_memory_server_t* server);
/** The `size` bytes of rank `root`, in all ranks. INVALID where the root has another number of them. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_broadcast(heddle_memory_server_t* server, void* content,
                                                              size_t size, uint32_t root);
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_collective_segment_create(
    heddle_memory_server_t* server, uint64_t size, const char* kind, const heddle_memory_option_t* options,
    size_t count, heddle_memory_segment_t* segment);
HEDDLE_MEMORY_API heddle_memory_ret_t
heddle_memory_collective_segment_delete(heddle_memory_server_t* server, heddle_memory_segment_t segment);
/** Distributed as rank 0 says. */
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_collective_allocate(heddle_memory_server_t* server,
                                                                        uint64_t size,
                                                                        heddle_memory_segment_t segment,
                                                                        const char* distribution,
                                                                        heddle_memory_data_t* data);
HEDDLE_MEMORY_API heddle_memory_ret_t heddle_memory_collective_free(heddle_memory_server_t* server,
                                                                    heddle_memory_data_t data);

#ifdef __cplusplus
}
#endif

#endif
