/* What a client and the arbiter say to each other: fixed messages over a SOCK_SEQPACKET socket, and two pages
 * of shared memory for each client. C, because the library that `heddle run` loads into a program is C
 * without dependencies. docs/PROTOCOL.md tells the protocol; kProtocolVersion changes with every layout.
 *
 * The pages. The arbiter makes both as sealed memfds (no growing, no shrinking).
 *
 *   GrantPage: the arbiter writes, the client maps it read-only. It says which CPUs the client may use.
 * Readers take the mask under `epoch`, a sequence lock: odd while the arbiter writes; after an even,
 * unchanged epoch the copy is whole.
 *
 *   ClientPage: the client writes, the arbiter reads each word as hostile (copied once, bounded, never looped
 * on). It says how many CPUs the client could use now, and since when. Writing it costs the client one store;
 * nobody is woken by it. The arbiter looks at it only while some client wants more than it has.
 *
 * A socket message is needed only when someone must act: CHANGED tells the client to look at its grant, LEFT
 * tells the arbiter that the client's threads are off the CPUs it lost, DEMAND asks the arbiter to look at
 * the client's page now.
 */
#ifndef HEDDLE_CORES_PROTOCOL_H
#define HEDDLE_CORES_PROTOCOL_H

#include <stdint.h>

#ifdef __cplusplus
#include <atomic>
typedef std::atomic<uint32_t> heddle_atomic_u32;
typedef std::atomic<uint64_t> heddle_atomic_u64;
extern "C" {
#else
#include <stdatomic.h>
typedef _Atomic uint32_t heddle_atomic_u32;
typedef _Atomic uint64_t heddle_atomic_u64;
#endif

enum {
    HEDDLE_PROTOCOL_MAGIC = 0x4c444448, /* "HDDL" */
    HEDDLE_PROTOCOL_VERSION = 1,
    HEDDLE_MAX_CPUS = 1024,
    HEDDLE_MASK_WORDS = HEDDLE_MAX_CPUS / 64,
    HEDDLE_NAME_BYTES = 64,
    HEDDLE_TEXT_BYTES = 192,
    HEDDLE_PAGE_BYTES = 4096,
    HEDDLE_MESSAGE_BYTES = 1024, /* no message is longer */
    HEDDLE_STATUS_CPUS = 96,     /* CPUs in one STATUS_CPU_LIST message */
};

typedef struct {
    uint64_t words[HEDDLE_MASK_WORDS];
} heddle_mask;

enum heddle_message_type {
    HEDDLE_HELLO = 1,   /* c->a first message; the answer is WELCOME or REFUSED */
    HEDDLE_WELCOME = 2, /* a->c with two descriptors: the grant page and the client page */
    HEDDLE_REFUSED = 3, /* a->c and the connection ends */
    HEDDLE_DEMAND = 4,  /* c->a the page's demand changed and somebody should act now */
    HEDDLE_CHANGED = 5, /* a->c the grant page changed */
    HEDDLE_LEFT = 6,    /* c->a no thread of ours runs outside the mask of this epoch */
    HEDDLE_LIMITS = 7,  /* c->a new minimum, maximum and weight */
    HEDDLE_STATUS =
        8, /* c->a asks for one STATUS_HEAD, then STATUS_CPU_LIST and STATUS_CLIENT until STATUS_END */
    HEDDLE_STATUS_HEAD = 9,
    HEDDLE_STATUS_CPU_LIST = 10,
    HEDDLE_STATUS_CLIENT = 11,
    HEDDLE_STATUS_END = 12,
    HEDDLE_WATCH = 13, /* c->a an observer asks for EVENTs from now on, the present state first */
    HEDDLE_EVENT = 14,
};

enum heddle_client_kind {
    HEDDLE_KIND_PROGRAM = 0,  /* takes part in sharing */
    HEDDLE_KIND_OBSERVER = 1, /* reads the status or watches; gets no pages and no CPUs */
};

/* How a program follows its grant; decides what the arbiter may expect of it. */
enum heddle_client_mode {
    HEDDLE_MODE_AUTO = 0,
    HEDDLE_MODE_THREADS = 1,
    HEDDLE_MODE_MASK = 2,
};

enum heddle_refusal {
    HEDDLE_REFUSED_VERSION = 1,
    HEDDLE_REFUSED_FULL = 2,
    HEDDLE_REFUSED_MALFORMED = 3,
    HEDDLE_REFUSED_PERMISSION = 4,
};

enum heddle_event_kind {
    HEDDLE_EVENT_JOINED = 1, /* client, value = pid, name */
    HEDDLE_EVENT_LEFT = 2,   /* client, value = 0 exited, 1 killed or lost */
    HEDDLE_EVENT_CPU = 3,    /* cpu, client (0: nobody) */
    HEDDLE_EVENT_DEMAND = 4, /* client, value */
};

typedef struct {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint32_t bytes; /* of the whole message, this header included */
    uint32_t reserved;
} heddle_header;

typedef struct {
    heddle_header header;
    uint32_t kind;
    uint32_t mode;
    uint32_t demand;
    uint32_t min_cpus;
    uint32_t max_cpus;   /* 0: no limit */
    uint32_t weight;     /* 1 to 1000 */
    heddle_mask allowed; /* CPUs that the program may run on by its own affinity */
    heddle_mask held;    /* what it held under an arbiter that died; empty for a new program */
    char name[HEDDLE_NAME_BYTES];
} heddle_hello;

typedef struct {
    heddle_header header;
    uint32_t client;
    uint32_t cpus; /* of the machine */
} heddle_welcome;

typedef struct {
    heddle_header header;
    uint32_t code;
    char text[HEDDLE_TEXT_BYTES];
} heddle_refused;

typedef struct {
    heddle_header header;
    uint32_t epoch; /* CHANGED: now published; LEFT: the epoch that is obeyed */
} heddle_epoch_message;

typedef struct {
    heddle_header header;
    uint32_t min_cpus;
    uint32_t max_cpus;
    uint32_t weight;
} heddle_limits;

typedef struct {
    heddle_header header;
    uint32_t pid;
    uint32_t cpus;
    uint32_t clients;
    uint64_t uptime_us;
    char policy[16];
} heddle_status_head;

typedef struct {
    heddle_header header;
    uint32_t count;
    uint32_t reserved;
    struct {
        uint16_t cpu;
        uint16_t leaving; /* 1: its holder was asked to leave it */
        uint32_t client;  /* 0: nobody */
    } cpu[HEDDLE_STATUS_CPUS];
} heddle_status_cpu_list;

typedef struct {
    heddle_header header;
    uint32_t client;
    uint32_t pid;
    uint32_t uid;
    uint32_t demand;
    uint32_t min_cpus;
    uint32_t max_cpus;
    uint32_t weight;
    uint32_t target;
    uint64_t cpu_time_us; /* core-microseconds granted so far */
    heddle_mask granted;
    char name[HEDDLE_NAME_BYTES];
} heddle_status_client;

typedef struct {
    heddle_header header;
    uint32_t kind;
    uint32_t client;
    int32_t cpu;
    uint32_t value;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    char name[HEDDLE_NAME_BYTES];
} heddle_event;

typedef struct {
    uint32_t magic;
    uint32_t version;
    heddle_atomic_u32 epoch; /* sequence lock; the arbiter alone writes */
    heddle_atomic_u32
        contended; /* 1 while some client wants more than it has: waiting should not burn a core */
    heddle_atomic_u32 noticed; /* the demand that the arbiter last took into account */
    heddle_atomic_u32 count;   /* CPUs in mask */
    heddle_atomic_u64 mask[HEDDLE_MASK_WORDS];
} heddle_grant_page;

typedef struct {
    heddle_atomic_u32 demand; /* CPUs that the client could use now */
    heddle_atomic_u32 reserved;
    heddle_atomic_u64 since_ns; /* CLOCK_MONOTONIC when demand was last written */
} heddle_client_page;

#ifdef __cplusplus
}
#endif

#endif
