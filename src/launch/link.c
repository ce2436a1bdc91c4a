#define _GNU_SOURCE
#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "hello.h"
#include "news.h"
#include "real.h"

enum { kRetryMs = 100, kLookAgainMs = 1000, kGrantTries = 10000 };
#define NOTHING_OBSERVED UINT64_MAX

/* The arbiter's pages, written before threads exist or by the helper thread, and read everywhere; those of an
 * arbiter that died stay mapped, so that a reader never faults. A forked child has none of them mapped, so
 * the pointers stand in memory that the kernel empties in it, also where the C library knows nothing of the
 * fork: such a child is unmanaged from its first instruction. */
struct pages {
    _Atomic(const heddle_grant_page*) grant;
    _Atomic(heddle_client_page*) page;
};
static struct pages no_pages;
static struct pages* pages = &no_pages; /* set once, before threads exist */

static bool has_told_of_refusal; /* since it was taken in last; of whoever registers */

static struct {
    _Atomic int socket;
    ino_t socket_identity;
    /* What the program announced, and what was observed instead while just that was announced: two halves of
     * one word, the announced one above; the page shows the one that holds. */
    _Atomic int announced;
    _Atomic uint64_t observed;
    _Atomic int own;     /* the program's own threads among those announced */
    _Atomic int meeting; /* threads of regions that often meet */
    _Atomic int widened; /* threads that start a program */
    enum heddle_client_mode mode;
    cpu_set_t allowed;
    bool allowed_known;
    cpu_set_t mask_left; /* the calling thread's, when the process was last let go */
    _Atomic unsigned most_cpus;
    /* As `heddle run` has registered this process: where it is a script, the kernel names its interpreter. */
    char name[HEDDLE_NAME_BYTES];
    char path[sizeof(((struct sockaddr_un*)0)->sun_path)];
} self = {.socket = -1, .announced = 1, .own = 1, .observed = NOTHING_OBSERVED};

uint64_t link_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Itself: the wrapper of blocking.c would count it as a wait of the program's. For ever where the time is
 * negative. */
static long wait_readable(struct pollfd* ready, int timeout_ms) {
    struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    return syscall(SYS_ppoll, ready, 1, timeout_ms < 0 ? NULL : &timeout, NULL, 0);
}

bool link_managed(void) {
    return atomic_load_explicit(&pages->grant, memory_order_acquire) != NULL;
}

unsigned link_most_cpus(void) {
    return atomic_load_explicit(&self.most_cpus, memory_order_relaxed);
}

const cpu_set_t* link_allowed(void) {
    return &self.allowed;
}

enum heddle_client_mode link_mode(void) {
    return self.mode;
}

/* Our socket's number, or -1. A program that closes descriptors it does not know may have closed it by a
 * system call of its own and opened another file under its number. */
static int own_socket(void) {
    const int fd = atomic_load_explicit(&self.socket, memory_order_relaxed);
    struct stat status;
    return fd >= 0 && fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) &&
                   status.st_ino == self.socket_identity
               ? fd
               : -1;
}

int link_descriptor(void) {
    return atomic_load_explicit(&self.socket, memory_order_relaxed);
}

void link_make_way(void) {
    const int fd = own_socket();
    if (fd >= 0) atomic_store(&self.socket, (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, fd + 1));
}

static void fill_header(heddle_header* header, enum heddle_message_type type, size_t bytes) {
    header->magic = HEDDLE_PROTOCOL_MAGIC;
    header->version = HEDDLE_PROTOCOL_VERSION;
    header->type = (uint16_t)type;
    header->bytes = (uint32_t)bytes;
}

static int say_hello(int fd) {
    struct hello hello = {.name = self.name[0] != '\0' ? self.name : program_invocation_short_name,
                          .mode = self.mode,
                          .demand = atomic_load(&self.announced),
                          .allowed = &self.allowed};
    struct link_grant held;
    if (link_read_grant(&held)) hello.held = &held.cpus;
    return hello_send(fd, &hello);
}

/* Receives the answer to HELLO with its two descriptors. Returns as link_open. */
static int receive_welcome(int fd, int descriptors[2], unsigned* cpus) {
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (wait_readable(&ready, kAnswerDeadlineMs) != 1) return ETIMEDOUT;
    union {
        heddle_header header;
        heddle_welcome welcome;
        heddle_refused refused;
        char bytes[HEDDLE_MESSAGE_BYTES];
    } message;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct iovec part = {&message, sizeof message};
    struct msghdr packet = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    const ssize_t got = hello_receive(fd, &packet, MSG_CMSG_CLOEXEC);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return ECONNRESET;
    if (got < (ssize_t)sizeof message.header || message.header.magic != HEDDLE_PROTOCOL_MAGIC) return EPROTO;
    if (message.header.type == HEDDLE_REFUSED && got == sizeof message.refused) {
        message.refused.text[sizeof message.refused.text - 1] = '\0';
        if (!has_told_of_refusal)
            fprintf(stderr, "heddle: %s runs unmanaged: the arbiter refuses: %s\n",
                    program_invocation_short_name, message.refused.text);
        has_told_of_refusal = true;
        return LINK_REFUSED;
    }
    const struct cmsghdr* rights = CMSG_FIRSTHDR(&packet);
    if (message.header.version != HEDDLE_PROTOCOL_VERSION || message.header.type != HEDDLE_WELCOME ||
        rights == NULL || rights->cmsg_type != SCM_RIGHTS || rights->cmsg_len != CMSG_LEN(2 * sizeof(int)))
        return EPROTO;
    has_told_of_refusal = false;
    memcpy(descriptors, CMSG_DATA(rights), 2 * sizeof(int));
    *cpus = got == sizeof message.welcome ? message.welcome.cpus : 0;
    return 0;
}

/* False where the arbiter's pages cannot be had; none of them is left mapped then. */
static bool map_pages(const int descriptors[2]) {
    if (pages == &no_pages) {
        void* memory = mmap(NULL, sizeof *pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return false;
        madvise(memory, sizeof *pages, MADV_WIPEONFORK);
        pages = memory;
    }
    const heddle_grant_page* grant = mmap(NULL, HEDDLE_PAGE_BYTES, PROT_READ, MAP_SHARED, descriptors[0], 0);
    heddle_client_page* page =
        mmap(NULL, HEDDLE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, descriptors[1], 0);
    if (grant == MAP_FAILED || page == MAP_FAILED || grant->magic != HEDDLE_PROTOCOL_MAGIC) {
        if (grant != MAP_FAILED) munmap((void*)(size_t)grant, HEDDLE_PAGE_BYTES);
        if (page != MAP_FAILED) munmap(page, HEDDLE_PAGE_BYTES);
        return false;
    }
    madvise(page, HEDDLE_PAGE_BYTES, MADV_DONTFORK);
    madvise((void*)(size_t)grant, HEDDLE_PAGE_BYTES, MADV_DONTFORK);
    atomic_store_explicit(&pages->page, page, memory_order_release);
    atomic_store(&pages->grant, grant);
    if (!news_have_ended()) return true;
    atomic_store(&pages->grant, NULL);
    return false;
}

/* Of so many CPUs that the arbiter hands out. */
static unsigned most_of(unsigned there) {
    unsigned most = (unsigned)CPU_COUNT(&self.allowed);
    const unsigned wanted = hello_max_cpus();
    if (there < most) most = there;
    return wanted > 0 && wanted < most ? wanted : most;
}

/* Takes the answer to HELLO, and the socket where that is a welcome. Returns as link_open. */
static int be_welcomed(int fd) {
    int descriptors[2];
    unsigned there = 0;
    int failure = receive_welcome(fd, descriptors, &there);
    if (failure == 0) {
        HEDDLE_FAILPOINT(link_was_welcomed);
        if (!map_pages(descriptors)) failure = EPROTO;
        close(descriptors[0]);
        close(descriptors[1]);
    }
    if (failure != 0) {
        close(fd);
        return failure;
    }
    struct stat status;
    if (fstat(fd, &status) == 0) self.socket_identity = status.st_ino;
    atomic_store(&self.most_cpus, most_of(there));
    atomic_store(&self.socket, fd);
    HEDDLE_FAILPOINT(link_registered);
    link_change_demand(0, false);
    return 0;
}

static int register_with(const char* path) {
    const int fd = hello_connect(path);
    if (fd < 0) return errno;
    HEDDLE_FAILPOINT(link_connected);
    const int failure = say_hello(fd);
    HEDDLE_FAILPOINT(link_said_hello);
    if (failure == 0) return be_welcomed(fd);
    close(fd);
    return failure;
}

/* Of the calling thread, as it is. */
int link_open(const cpu_set_t* mask) {
    const char* path = getenv("HEDDLE_ARBITER");
    if (path == NULL || *path != '/' || strlen(path) >= sizeof self.path) return ENOENT;
    memcpy(self.path, path, strlen(path) + 1);
    self.mode = hello_mode();
    cpu_set_t allowed;
    char name[HEDDLE_NAME_BYTES];
    const int handed_over = hello_take_over(&allowed, name);
    if (handed_over >= 0) {
        memcpy(self.name, name, sizeof name);
        self.allowed = allowed;
        self.allowed_known = true;
        const int failure = be_welcomed(handed_over);
        if (failure != ECONNRESET) return failure; /* else the arbiter has died since */
    }
    /* Who was bound anew since it was let go, by whomever, may run there alone. */
    if (!self.allowed_known || !CPU_EQUAL(mask, &self.mask_left)) self.allowed = *mask;
    self.allowed_known = true;
    return register_with(self.path);
}

void link_forget(void) {
    const int fd = own_socket();
    atomic_store(&self.socket, -1);
    if (fd >= 0) syscall(SYS_close, fd);
    self.name[0] = '\0';
    atomic_store(&pages->grant, NULL);
    atomic_store(&pages->page, NULL);
    atomic_store(&self.announced, 1);
    atomic_store(&self.own, 1);
    atomic_store(&self.meeting, 0);
    atomic_store(&self.widened, 0);
    atomic_store(&self.observed, NOTHING_OBSERVED);
}

void link_note_mask(const cpu_set_t* mask) {
    self.mask_left = *mask;
}

void link_let_go(bool is_chosen) {
    if (is_chosen) self.allowed_known = false;
}

void link_hang_up(void) {
    const int fd = own_socket();
    if (fd >= 0) shutdown(fd, SHUT_RDWR);
}

void link_renounce(void) {
    news_end();
    link_hang_up();
}

enum link_news link_wait(int timeout_ms) {
    heddle_epoch_message message;
    while (true) {
        const int fd = own_socket();
        if (fd < 0) return LINK_GONE;
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (timeout_ms >= 0 && wait_readable(&ready, timeout_ms) == 0) return LINK_NOTHING;
        const ssize_t got = syscall(SYS_recvfrom, fd, &message, sizeof message, 0, NULL, NULL);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return LINK_GONE;
        if (got == sizeof message && message.header.type == HEDDLE_CHANGED) return LINK_CHANGED;
    }
}

bool link_reopen(void) {
    HEDDLE_FAILPOINT(link_lost_its_arbiter);
    const int old = own_socket();
    atomic_store(&self.socket, -1);
    if (old >= 0) syscall(SYS_close, old);
    char folder[sizeof self.path];
    memcpy(folder, self.path, sizeof folder);
    char* slash = strrchr(folder, '/');
    if (slash == NULL || slash == folder) return false;
    *slash = '\0';
    while (true) {
        /* Each time, as the folder may have gone, and another may have come. */
        const bool watching = news_watch(folder);
        if (news_have_ended()) return false;
        const int failure = register_with(self.path);
        if (failure == 0) break;
        /* Where nobody listens, nothing wakes us until something happens in the arbiter's folder; without
         * inotify we look once a second. Where somebody listens and did not take us in, being stopped or on
         * its way out, no such event may ever come; nor where what it refuses us for, as that it is full, has
         * gone. */
        const bool nobody = failure == ENOENT || failure == ECONNREFUSED;
        news_wait(failure == LINK_REFUSED || (nobody && !watching) ? kLookAgainMs : nobody ? -1 : kRetryMs);
        if (news_have_ended()) return false;
    }
    news_close();
    HEDDLE_FAILPOINT(link_is_back);
    return !news_have_ended() && atomic_load(&self.socket) >= 0;
}

bool link_read_grant(struct link_grant* grant) {
    const heddle_grant_page* page = atomic_load_explicit(&pages->grant, memory_order_acquire);
    for (int tries = 0; page != NULL && tries < kGrantTries; ++tries) {
        const uint32_t before = atomic_load_explicit(&page->epoch, memory_order_acquire);
        grant->epoch = before;
        grant->count = atomic_load_explicit(&page->count, memory_order_relaxed);
        const uint32_t contention = atomic_load_explicit(&page->contended, memory_order_relaxed);
        grant->contended = (contention & HEDDLE_CONTENDED) != 0;
        grant->parked = (contention & HEDDLE_PARKED) != 0;
        grant->turn = (contention & HEDDLE_TURN) != 0;
        grant->leaving = atomic_load_explicit(&page->leaving, memory_order_relaxed) != 0;
        CPU_ZERO(&grant->cpus);
        for (size_t cpu = 0; cpu < HEDDLE_MAX_CPUS; cpu += 64) {
            uint64_t word = atomic_load_explicit(&page->mask[cpu / 64], memory_order_relaxed);
            for (; word != 0; word &= word - 1) CPU_SET(cpu + (size_t)__builtin_ctzll(word), &grant->cpus);
        }
        atomic_thread_fence(memory_order_acquire);
        if (before % 2 == 0 && atomic_load_explicit(&page->epoch, memory_order_relaxed) == before)
            return true;
    }
    return false;
}

bool link_contended(void) {
    const heddle_grant_page* page = atomic_load_explicit(&pages->grant, memory_order_acquire);
    return page != NULL && atomic_load_explicit(&page->contended, memory_order_relaxed) != 0;
}

void link_send_left(uint32_t epoch) {
    heddle_epoch_message message = {.epoch = epoch};
    fill_header(&message.header, HEDDLE_LEFT, sizeof message);
    const int fd = own_socket();
    HEDDLE_FAILPOINT(link_says_left);
    if (fd >= 0) send(fd, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
    HEDDLE_FAILPOINT(link_said_left);
}

static void send_demand(void) {
    heddle_header header = {0};
    fill_header(&header, HEDDLE_DEMAND, sizeof header);
    const int fd = own_socket();
    /* A full socket means that the arbiter has many such messages of ours to read: one more says nothing new.
     */
    if (fd >= 0) send(fd, &header, sizeof header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static uint32_t demand_to_show(int announced) {
    const uint64_t observed = atomic_load_explicit(&self.observed, memory_order_relaxed);
    if (observed != NOTHING_OBSERVED && (uint32_t)(observed >> 32) == (uint32_t)announced)
        return (uint32_t)observed;
    return announced > 0 ? (uint32_t)announced : 0;
}

static uint32_t gang_to_show(const _Atomic int* threads, uint32_t demand) {
    const int gang = atomic_load_explicit(threads, memory_order_relaxed);
    if (self.mode != HEDDLE_MODE_AUTO || gang < 2) return 0;
    return (uint32_t)gang < demand ? (uint32_t)gang : demand;
}

/* Threads announce in any order, and show in any other: who shows last shows what holds. */
static bool show_demand(bool soon) {
    const heddle_grant_page* grant = atomic_load_explicit(&pages->grant, memory_order_acquire);
    heddle_client_page* page = atomic_load_explicit(&pages->page, memory_order_acquire);
    if (grant == NULL || page == NULL) return false;
    int announced = atomic_load(&self.announced);
    uint32_t shown = 0;
    for (int before = announced + 1; before != announced; announced = atomic_load(&self.announced)) {
        before = announced;
        shown = demand_to_show(announced);
        atomic_store_explicit(&page->since_ns, link_now_ns(), memory_order_relaxed);
        atomic_store_explicit(&page->together, gang_to_show(&self.own, shown), memory_order_relaxed);
        atomic_store_explicit(&page->meeting, gang_to_show(&self.meeting, shown), memory_order_relaxed);
        HEDDLE_FAILPOINT(link_shows_demand);
        /* seq_cst with the arbiter's stores of `count` and `contended`: either it sees our demand or we see
         * that CPUs are gone or somebody waits. */
        atomic_store(&page->demand, shown);
        HEDDLE_FAILPOINT(link_showed_demand);
    }
    const bool lacks = shown > atomic_load(&grant->count);
    if (atomic_load(&grant->contended) == 0 && !lacks) return false;
    const uint32_t noticed = atomic_load_explicit(&grant->noticed, memory_order_relaxed);
    if (shown > noticed || (soon && shown < noticed)) send_demand();
    return shown > noticed;
}

bool link_change_demand(int change, bool soon) {
    atomic_fetch_add(&self.announced, change);
    return show_demand(soon);
}

void link_change_own(int change) {
    atomic_fetch_add_explicit(&self.own, change, memory_order_relaxed);
}

void link_change_meeting(int change) {
    atomic_fetch_add_explicit(&self.meeting, change, memory_order_relaxed);
    link_change_demand(0, false);
    send_demand();
}

void link_change_widened(int change) {
    heddle_client_page* page = atomic_load_explicit(&pages->page, memory_order_acquire);
    int now = atomic_fetch_add(&self.widened, change) + change;
    for (int shown = now + 1; page != NULL && shown != now; now = atomic_load(&self.widened)) {
        shown = now;
        atomic_store(&page->widened, (uint32_t)(now < 0 ? 0 : now));
    }
}

void link_show_witness(int thread) {
    heddle_client_page* page = atomic_load_explicit(&pages->page, memory_order_acquire);
    if (page != NULL) atomic_store_explicit(&page->witness, (uint32_t)thread, memory_order_relaxed);
}

bool link_meets_often(void) {
    return atomic_load_explicit(&self.meeting, memory_order_relaxed) > 1;
}

int link_announced(void) {
    return atomic_load(&self.announced);
}

void link_observe(int announced, unsigned demand) {
    const uint64_t word = (uint64_t)(uint32_t)announced << 32 | demand;
    if (atomic_exchange(&self.observed, word) != word) show_demand(false);
}

void link_observe_nothing(void) {
    if (atomic_exchange(&self.observed, NOTHING_OBSERVED) != NOTHING_OBSERVED) show_demand(false);
}
