/* What a client and the arbiter say to each other: fixed messages over a SOCK_SEQPACKET socket, and two pages
 * of shared memory for each client. C, because the library that `heddle run` loads into a program is C
 * without dependencies. docs/PROTOCOL.md tells the protocol; its version changes with every layout, but
 * not where a reserved word gets a meaning that 0 does not have.
 *
 * The pages. The arbiter makes both as sealed memfds (no growing, no shrinking).
 *
 *   GrantPage: the arbiter writes, the client maps it read-only. It says which CPUs the client may use.
 * Readers take the mask under `epoch`, a sequence lock: odd while the arbiter writes; after an even,
 * unchanged epoch the copy is whole.
 *
 *   ClientPage: the client writes, the arbiter reads each word as hostile (copied once, bounded, never looped
 * on). It says how many CPUs the client could use now, and since when, which of its CPUs it has released, and
 * which of its components uses which CPU.
 * Writing it costs the client one store; nobody is woken by it. The arbiter looks at it only while some
 * client wants more than it has. Other clients of the same user may map it read-only, see below.
 *
 * A socket message is needed only when someone must act: CHANGED tells the client to look at its grant, LEFT
 * tells the arbiter that the client's threads are off the CPUs it lost, DEMAND asks the arbiter to look at
 * the client's page now.
 *
 * Handing a CPU over without the arbiter (docs/HANDOVER.md says why it is right). Each grant of a CPU has a
 * generation. The words {generation, client} of a CPU are
 *
 *   successor, in the holder's grant page: to whom the CPU goes when its holder releases it now; TAKEN after
 *            the arbiter has ended the grant by force;
 *   lender, in the grant page of each successor ever named for this grant: whose release word to watch;
 *   release, in the holder's client page: HELD, or released to a client, LENT to nobody in particular, or
 *            TAKEN by the arbiter. A generation other than that of the grant is as HELD.
 *
 * The holder exchanges its release word for {generation, successor}: from then on the CPU is the successor's,
 * whatever the arbiter named in the meantime. The successor owns it when it reads its own id there and then,
 * after that, still finds the same generation in its lender word. LENT is undecided: the holder may take the
 * CPU back, and the arbiter may take it away, each by a compare-and-swap.
 */
#ifndef HEDDLE_CORES_PROTOCOL_H
#define HEDDLE_CORES_PROTOCOL_H

#include <stdint.h>

#ifdef __cplusplus
#include <atomic>
typedef std::atomic<uint8_t> heddle_atomic_u8;
typedef std::atomic<uint32_t> heddle_atomic_u32;
typedef std::atomic<uint64_t> heddle_atomic_u64;
extern "C" {
#else
#include <stdatomic.h>
typedef _Atomic uint8_t heddle_atomic_u8;
typedef _Atomic uint32_t heddle_atomic_u32;
typedef _Atomic uint64_t heddle_atomic_u64;
#endif

enum {
    HEDDLE_PROTOCOL_MAGIC = 0x4c444448, /* "HDDL" */
    HEDDLE_PROTOCOL_VERSION = 9,
    HEDDLE_MAX_CPUS = 1024,
    HEDDLE_MASK_WORDS = HEDDLE_MAX_CPUS / 64,
    HEDDLE_NAME_BYTES = 64,
    HEDDLE_TEXT_BYTES = 192,
    HEDDLE_COMPONENTS = 32,      /* of a client that have a name in its page */
    HEDDLE_COMPONENT_BYTES = 32, /* of such a name */
    HEDDLE_COMPONENT_WORDS = HEDDLE_COMPONENT_BYTES / 8,
    HEDDLE_PAGE_BYTES = 20480,   /* of each of the two pages */
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
    HEDDLE_STATUS = 8,  /* c->a asks for one STATUS_HEAD, then STATUS_CPU_LIST, STATUS_CLIENT and
                           STATUS_COMPONENT until  STATUS_END */
    HEDDLE_STATUS_HEAD = 9,
    HEDDLE_STATUS_CPU_LIST = 10,
    HEDDLE_STATUS_CLIENT = 11,
    HEDDLE_STATUS_END = 12,
    HEDDLE_WATCH = 13, /* c->a an observer asks for EVENTs from now on, the present state first */
    HEDDLE_EVENT = 14,
    HEDDLE_MAPPED = 15,    /* c->a the client page is mapped: from now on nobody may map it for writing */
    HEDDLE_RELEASED = 16,  /* c->a somebody should look at the release words: mine and my lenders' */
    HEDDLE_PEER = 17,      /* a->c with one descriptor: the client page of another client, to map read-only */
    HEDDLE_PEER_GONE = 18, /* a->c that client is no more */
    HEDDLE_STATUS_COMPONENT = 19,
    HEDDLE_COUNT = 20, /* a->c somebody looks: what your components have done is to be in your page */
};

/* What a client can do beyond the least: bits of heddle_hello.features. */
enum heddle_feature {
    HEDDLE_FEATURE_HANDOVER = 1, /* lends and takes CPUs by the release words, and sends MAPPED */
};

/* The client part of a word {generation, client} where it is not a client. */
#define HEDDLE_HELD 0x0u
#define HEDDLE_LENT 0xffffffffu
#define HEDDLE_TAKEN 0xfffffffeu

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
    uint32_t max_cpus; /* 0: no limit */
    uint32_t weight;   /* 1 to 1000 */
    uint32_t features; /* of heddle_feature; bits that the arbiter does not know are ignored */
    uint32_t reserved;
    heddle_mask allowed; /* CPUs that the program may run on by its own affinity */
    heddle_mask held;    /* what it held under an arbiter that died; empty for a new program */
    heddle_mask owned;   /* CPUs that are its own under a policy with owners; means nothing under others */
    char name[HEDDLE_NAME_BYTES];
} heddle_hello;

typedef struct {
    heddle_header header;
    uint32_t client;
    uint32_t cpus;   /* of the machine */
    uint32_t owners; /* 1: the policy has owners, and what HELLO called owned is the client's own */
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
    uint32_t client;
} heddle_peer; /* PEER and PEER_GONE */

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
    uint64_t used_us; /* core-microseconds granted to clients, those that have left included */
    uint64_t lent_us; /* of these, on CPUs that another client owns */
    uint64_t idle_us; /* core-microseconds in which nobody held a CPU that could be had */
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

enum { HEDDLE_FENCED_BY_AFFINITY = 1, HEDDLE_FENCED_BY_CPUSET = 2 };

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
    uint32_t away;   /* 1: it lives, and has not come back yet to this arbiter, which was started anew */
    uint32_t fenced; /* 0, or HEDDLE_FENCED_BY_*: it is kept from CPUs that it did not leave when asked to */
    uint64_t cpu_time_us; /* core-microseconds granted so far */
    heddle_mask granted;
    heddle_mask owned;
    char name[HEDDLE_NAME_BYTES];
} heddle_status_client;

typedef struct {
    heddle_header header;
    uint32_t client;
    uint32_t reserved;
    heddle_mask cpus;  /* that the component of this client uses */
    uint64_t inserted; /* pieces of work that it was given so far, and those that have ended */
    uint64_t ended;
    char name[HEDDLE_COMPONENT_BYTES];
} heddle_status_component;

typedef struct {
    heddle_header header;
    uint32_t kind;
    uint32_t client;
    int32_t cpu;
    uint32_t value;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    char name[HEDDLE_NAME_BYTES];
} heddle_event;

enum heddle_contention {
    HEDDLE_CONTENDED = 1, /* some client wants more than it has: waiting should not burn a core */
    HEDDLE_PARKED = 2,    /* others have their turn: no thread of the client is to run until the next grant */
    HEDDLE_TURN = 4,      /* it is the client's turn: while it lasts nobody else runs on its CPUs */
};

typedef struct {
    uint32_t magic;
    uint32_t version;
    heddle_atomic_u32 epoch;     /* sequence lock; the arbiter alone writes */
    heddle_atomic_u32 contended; /* of heddle_contention */
    heddle_atomic_u32 noticed;   /* the demand that the arbiter last took into account */
    heddle_atomic_u32 count;     /* CPUs in mask */
    heddle_atomic_u32
        leaving; /* 1 while the arbiter waits for LEFT: also of CPUs that came and went unseen */
    heddle_atomic_u32
        fenced; /* 1 from before the arbiter binds threads of the client until they are as before */
    heddle_atomic_u64 mask[HEDDLE_MASK_WORDS];
    heddle_atomic_u64 successor[HEDDLE_MAX_CPUS]; /* of the CPUs that the client holds */
    heddle_atomic_u64 lender[HEDDLE_MAX_CPUS];    /* of the CPUs that may be handed to it */
} heddle_grant_page;

/* What a waiting successor looks at all the time (release) shares no cache line of 64 bytes with what its
 * holder writes while it goes on, nor what a holder reads right after a release (sleepers, watched) with what
 * the successor writes: each such line is one journey more from core to core in every hand-over. */
typedef struct {
    heddle_atomic_u32 demand;   /* CPUs that the client could use now */
    heddle_atomic_u32 together; /* threads that spin for each other, and need a CPU each at once */
    heddle_atomic_u64 since_ns; /* CLOCK_MONOTONIC when demand was last written */
    heddle_atomic_u32 meeting;  /* threads of parallel regions that run and whose threads often meet */
    heddle_atomic_u32 widened;  /* threads that run elsewhere for as long as they start a program */
    heddle_atomic_u32 witness; /* a thread that the client never binds: who has bound it meant all; 0: none */
    heddle_atomic_u32 reserved_1[9];
    heddle_atomic_u32 sleepers; /* its threads that sleep until a CPU is handed to them */
    heddle_atomic_u32 watched;  /* 1: some of its threads may be waiting for a CPU, asleep or not */
    heddle_atomic_u32 reserved_2[14];
    heddle_atomic_u64 release[HEDDLE_MAX_CPUS]; /* of the CPUs that the client holds */
    heddle_atomic_u32 bell[HEDDLE_MAX_CPUS];    /* counts writes of release that others wait for; a futex */
    heddle_atomic_u64 component[HEDDLE_COMPONENTS][HEDDLE_COMPONENT_WORDS]; /* names of its components */
    heddle_atomic_u8 user[HEDDLE_MAX_CPUS]; /* 0 nobody, n the n-th component, more: one without a name */
    heddle_atomic_u64
        inserted[HEDDLE_COMPONENTS];            /* work of each component so far, when last asked by COUNT */
    heddle_atomic_u64 ended[HEDDLE_COMPONENTS]; /* and of that what has ended */
} heddle_client_page;

/* The word {generation, client}, and its parts. */
static inline uint64_t heddle_word(uint32_t generation, uint32_t client) {
    return (uint64_t)generation << 32 | client;
}
static inline uint32_t heddle_word_generation(uint64_t word) {
    return (uint32_t)(word >> 32);
}
static inline uint32_t heddle_word_client(uint64_t word) {
    return (uint32_t)word;
}

#ifdef __cplusplus
}
#endif

#endif
