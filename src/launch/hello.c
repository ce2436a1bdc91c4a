#define _GNU_SOURCE
#include "hello.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cpu_list.h"

enum { kHighDescriptor = 512, kNobody = 0 };

/* "PID SOCKET INODE WORD,WORD...": whose socket it is, which one, and the program's own affinity, from CPU 0
 * up, because an arbiter may have bound the process before its first instruction. */
static const char kVariable[] = "HEDDLE_LINK";

enum heddle_client_mode hello_mode(void) {
    const char* mode = getenv("HEDDLE_MODE");
    if (mode != NULL && strcmp(mode, "threads") == 0) return HEDDLE_MODE_THREADS;
    if (mode != NULL && strcmp(mode, "mask") == 0) return HEDDLE_MODE_MASK;
    return HEDDLE_MODE_AUTO;
}

int hello_connect(const char* path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    /* An arbiter that is stopped and whose backlog is full must not hold the program up. */
    const struct timeval deadline = {.tv_usec = kAnswerDeadlineMs * 1000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof deadline);
    if (connect(fd, (struct sockaddr*)&address, sizeof address) != 0) {
        const int failure = errno;
        close(fd);
        errno = failure;
        return -1;
    }
    return hello_out_of_the_way(fd);
}

int hello_out_of_the_way(int fd) {
    const int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, kHighDescriptor);
    if (high < 0) return fd;
    close(fd);
    return high;
}

static uint32_t number_from(const char* name, uint32_t otherwise) {
    const char* text = getenv(name);
    if (text == NULL || *text == '\0') return otherwise;
    char* end = NULL;
    const unsigned long value = strtoul(text, &end, 10);
    return *end == '\0' && value <= HEDDLE_MAX_CPUS ? (uint32_t)value : otherwise;
}

unsigned hello_max_cpus(void) {
    return number_from("HEDDLE_MAX", 0);
}

static void mask_from(heddle_mask* mask, const cpu_set_t* cpus) {
    for (size_t cpu = 0; cpu < HEDDLE_MAX_CPUS; ++cpu)
        if (CPU_ISSET(cpu, cpus)) mask->words[cpu / 64] |= (uint64_t)1 << (cpu % 64);
}

static heddle_hello hello_of(enum heddle_client_kind kind) {
    return (heddle_hello){.header = {.magic = HEDDLE_PROTOCOL_MAGIC,
                                     .version = HEDDLE_PROTOCOL_VERSION,
                                     .type = HEDDLE_HELLO,
                                     .bytes = sizeof(heddle_hello)},
                          .kind = kind,
                          .weight = 1};
}

/* What the program and those that it starts are to have, whatever others want. */
static void fill_reservation(heddle_hello* message) {
    message->min_cpus = number_from("HEDDLE_MIN", 0);
    message->max_cpus = hello_max_cpus();
    const char* own = getenv("HEDDLE_OWN");
    if (own != NULL && !heddle_read_cpu_list(own, message->owned.words, HEDDLE_MAX_CPUS))
        memset(&message->owned, 0, sizeof message->owned);
}

int hello_send(int socket, const struct hello* hello) {
    heddle_hello message = hello_of(HEDDLE_KIND_PROGRAM);
    fill_reservation(&message);
    message.mode = hello->mode;
    message.demand = hello->demand > 0 ? (uint32_t)hello->demand : 0;
    message.weight = number_from("HEDDLE_WEIGHT", 1);
    if (message.weight == 0) message.weight = 1;
    mask_from(&message.allowed, hello->allowed);
    if (hello->held != NULL) mask_from(&message.held, hello->held);
    const char* name = getenv("HEDDLE_NAME");
    if (name == NULL || *name == '\0') name = hello->name;
    snprintf(message.name, sizeof message.name, "%s", name);
    /* Who has hung up may have said before why it refuses: that is there to be read. */
    const bool sent = send(socket, &message, sizeof message, MSG_NOSIGNAL) == sizeof message;
    return sent || errno == EPIPE ? 0 : errno;
}

ssize_t hello_receive(int socket, struct msghdr* packet, int flags) {
    const ssize_t got = recvmsg(socket, packet, flags);
    if (got >= 0 || errno != ECONNRESET) return got;
    return recvmsg(socket, packet, flags); /* that it hung up is told once, and first */
}

bool hello_stay(int socket) {
    heddle_hello message = hello_of(HEDDLE_KIND_OBSERVER);
    fill_reservation(&message);
    struct stat status;
    if (send(socket, &message, sizeof message, MSG_NOSIGNAL) != sizeof message || fstat(socket, &status) != 0)
        return false;
    char text[64];
    snprintf(text, sizeof text, "%d %d %llu ", kNobody, socket, (unsigned long long)status.st_ino);
    return setenv(kVariable, text, 1) == 0 && fcntl(socket, F_SETFD, 0) == 0;
}

bool hello_hand_over(int socket, const cpu_set_t* allowed, const char* name) {
    heddle_mask mask = {{0}};
    mask_from(&mask, allowed);
    size_t words = HEDDLE_MASK_WORDS;
    while (words > 1 && mask.words[words - 1] == 0) --words;
    struct stat status;
    if (fstat(socket, &status) != 0) return false;
    char text[64 + HEDDLE_MASK_WORDS * sizeof "ffffffffffffffff," + HEDDLE_NAME_BYTES];
    int length =
        snprintf(text, sizeof text, "%d %d %llu ", (int)getpid(), socket, (unsigned long long)status.st_ino);
    for (size_t i = 0; i < words; ++i)
        length +=
            snprintf(text + length, sizeof text - (size_t)length, "%llx,", (unsigned long long)mask.words[i]);
    snprintf(text + length, sizeof text - (size_t)length, ";%.*s", HEDDLE_NAME_BYTES - 1, name);
    return setenv(kVariable, text, 1) == 0 && fcntl(socket, F_SETFD, 0) == 0;
}

void hello_discard(void) {
    unsetenv(kVariable);
}

/* A program that finds no socket of its own under the number leaves it alone. */
static bool is_socket(int fd, unsigned long long inode) {
    struct stat status;
    return fd >= 0 && fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) && status.st_ino == inode;
}

int hello_take_over(cpu_set_t* allowed, char name[HEDDLE_NAME_BYTES]) {
    const char* text = getenv(kVariable);
    if (text == NULL) return -1;
    char* at = NULL;
    const long process = strtol(text, &at, 10);
    const int fd = (int)strtol(at, &at, 10);
    const unsigned long long inode = strtoull(at, &at, 10);
    CPU_ZERO(allowed);
    for (size_t cpu = 0; cpu < HEDDLE_MAX_CPUS && *at != '\0'; cpu += 64) {
        char* end = NULL;
        unsigned long long word = strtoull(at, &end, 16);
        if (end == at || *end != ',') break;
        for (; word != 0; word &= word - 1) CPU_SET(cpu + (size_t)__builtin_ctzll(word), allowed);
        at = end + 1;
    }
    snprintf(name, HEDDLE_NAME_BYTES, "%s", *at == ';' ? at + 1 : program_invocation_short_name);
    hello_discard();
    if (!is_socket(fd, inode)) return -1;
    if (process != getpid() || CPU_COUNT(allowed) == 0) {
        close(fd); /* of a program around us */
        return -1;
    }
    return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? fd : -1;
}
