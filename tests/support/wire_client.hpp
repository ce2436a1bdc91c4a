// WireClient: one connection to an arbiter that says exactly what a test wants said, right or wrong.
//
// Owned by one thread. Speaks through protocol.h alone. No call blocks for longer than it is told to.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cores/codec.hpp"

namespace heddle::test {

inline uint64_t monotonic_ns() {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(t.tv_nsec);
}

union WireMessage {
    heddle_header header;
    heddle_welcome welcome;
    heddle_refused refused;
    heddle_epoch_message epoch;
    heddle_peer peer;
    heddle_status_head head;
    heddle_event event;
    char bytes[HEDDLE_MESSAGE_BYTES];
};

inline heddle_hello hello_of(const char* name, uint32_t demand, uint32_t kind = HEDDLE_KIND_PROGRAM) {
    auto hello = message_of<heddle_hello>(HEDDLE_HELLO);
    hello.kind = kind;
    hello.demand = demand;
    hello.weight = 1;
    std::strncpy(hello.name, name, sizeof hello.name - 1);
    return hello;
}

class WireClient {
  public:
    struct Grant {
        uint32_t epoch = 0;
        uint32_t count = 0;
        bool whole = false;  ///< false: an arbiter died while it wrote this
        heddle_mask mask{};
    };

    WireClient() = default;
    explicit WireClient(const std::string& path) {
        socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
        if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) close();
    }
    /// Both ways; the descriptor stays.
    void hang_up() { ::shutdown(socket_, SHUT_RDWR); }
    WireClient(WireClient&& other) noexcept
        : socket_(std::exchange(other.socket_, -1)),
          grant_(std::exchange(other.grant_, nullptr)),
          page_(std::exchange(other.page_, nullptr)),
          grant_fd(std::exchange(other.grant_fd, -1)),
          page_fd(std::exchange(other.page_fd, -1)),
          peer_fd(std::exchange(other.peer_fd, -1)),
          id(std::exchange(other.id, 0)) {}
    WireClient& operator=(WireClient&& other) noexcept {
        std::swap(socket_, other.socket_);
        std::swap(grant_, other.grant_);
        std::swap(page_, other.page_);
        std::swap(grant_fd, other.grant_fd);
        std::swap(page_fd, other.page_fd);
        std::swap(peer_fd, other.peer_fd);
        std::swap(id, other.id);
        return *this;
    }
    ~WireClient() {
        close();
        if (grant_ != nullptr) ::munmap(const_cast<heddle_grant_page*>(grant_), HEDDLE_PAGE_BYTES);
        if (page_ != nullptr) ::munmap(page_, HEDDLE_PAGE_BYTES);
        for (const int fd : {grant_fd, page_fd, peer_fd})
            if (fd >= 0) ::close(fd);
    }
    void close() {
        if (socket_ >= 0) ::close(socket_);
        socket_ = -1;
    }

    [[nodiscard]] bool connected() const { return socket_ >= 0; }
    [[nodiscard]] int descriptor() const { return socket_; }
    [[nodiscard]] const heddle_grant_page* grant_page() const { return grant_; }
    [[nodiscard]] heddle_client_page* page() { return page_; }

    /// Without waiting; false where it was not taken.
    bool send_bytes(const void* bytes, size_t length) const {
        return ::send(socket_, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(length);
    }
    template <class Message>
    bool send(const Message& message) const {
        return send_bytes(&message, sizeof message);
    }
    /// With `count` descriptors, those of `these` again and again.
    template <class Message>
    bool send_descriptors(const Message& message, std::span<const int> these, size_t count) const {
        std::vector<char> control(CMSG_SPACE(count * sizeof(int)));
        Message copy = message;
        iovec part{&copy, sizeof copy};
        msghdr packet{};
        packet.msg_iov = &part;
        packet.msg_iovlen = 1;
        packet.msg_control = control.data();
        packet.msg_controllen = control.size();
        cmsghdr* rights = CMSG_FIRSTHDR(&packet);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(count * sizeof(int));
        for (size_t i = 0; i < count; ++i)
            std::memcpy(CMSG_DATA(rights) + i * sizeof(int), &these[i % these.size()], sizeof(int));
        return ::sendmsg(socket_, &packet, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
    }
    bool send_left(uint32_t epoch) const {
        auto message = message_of<heddle_epoch_message>(HEDDLE_LEFT);
        message.epoch = epoch;
        return send(message);
    }

    enum class Got { kMessage, kNothing, kClosed };
    Got receive(WireMessage& message, int timeout_ms) {
        pollfd ready{socket_, POLLIN, 0};
        if (::poll(&ready, 1, timeout_ms) != 1) return Got::kNothing;
        alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
        iovec part{&message, sizeof message};
        msghdr packet{};
        packet.msg_iov = &part;
        packet.msg_iovlen = 1;
        packet.msg_control = control;
        packet.msg_controllen = sizeof control;
        if (::recvmsg(socket_, &packet, MSG_CMSG_CLOEXEC) <= 0) return Got::kClosed;
        if (const cmsghdr* rights = CMSG_FIRSTHDR(&packet); rights != nullptr) keep(*rights);
        return Got::kMessage;
    }
    /// The next message of this type, others passed over; false where the arbiter closed or was silent.
    bool receive_type(WireMessage& message, heddle_message_type type, int timeout_ms) {
        const uint64_t end = monotonic_ns() + static_cast<uint64_t>(timeout_ms) * 1'000'000U;
        while (monotonic_ns() < end && receive(message, timeout_ms) == Got::kMessage)
            if (message.header.type == type) return true;
        return false;
    }

    /// HELLO, WELCOME, and both pages mapped.
    bool join(const heddle_hello& hello, int timeout_ms = 2000) {
        WireMessage answer;
        if (!connected() || !send(hello) || receive(answer, timeout_ms) != Got::kMessage ||
            answer.header.type != HEDDLE_WELCOME)
            return false;
        id = answer.welcome.client;
        if (hello.kind == HEDDLE_KIND_OBSERVER) return true;
        if (grant_fd < 0 || page_fd < 0) return false;
        void* grant = ::mmap(nullptr, HEDDLE_PAGE_BYTES, PROT_READ, MAP_SHARED, grant_fd, 0);
        void* page = ::mmap(nullptr, HEDDLE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);
        if (grant == MAP_FAILED || page == MAP_FAILED) return false;
        grant_ = static_cast<const heddle_grant_page*>(grant);
        page_ = static_cast<heddle_client_page*>(page);
        return true;
    }
    /// As the protocol wants it: the page, then a message where somebody waits.
    void show_demand(uint32_t demand) {
        page_->since_ns.store(monotonic_ns(), std::memory_order_relaxed);
        page_->demand.store(demand);
        if (grant_->contended.load() != 0) send(message_of<heddle_header>(HEDDLE_DEMAND));
    }
    [[nodiscard]] Grant grant() const {
        Grant grant;
        for (int tries = 0; tries < 1300 && !grant.whole; ++tries) {
            // Whoever writes it may have lost its core; where it was stopped, nobody waits for long.
            if (tries > 1000) ::usleep(1000);
            grant.epoch = grant_->epoch.load(std::memory_order_acquire);
            grant.count = grant_->count.load(std::memory_order_acquire);
            for (size_t i = 0; i < HEDDLE_MASK_WORDS; ++i)
                grant.mask.words[i] = grant_->mask[i].load(std::memory_order_acquire);
            grant.whole =
                grant.epoch % 2 == 0 && grant_->epoch.load(std::memory_order_relaxed) == grant.epoch;
        }
        return grant;
    }

  private:
    void keep(const cmsghdr& rights) {
        if (rights.cmsg_len == CMSG_LEN(2 * sizeof(int))) {
            int both[2];
            std::memcpy(both, CMSG_DATA(&rights), sizeof both);
            grant_fd = both[0];
            page_fd = both[1];
        } else if (rights.cmsg_len == CMSG_LEN(sizeof(int))) {
            if (peer_fd >= 0) ::close(peer_fd);
            std::memcpy(&peer_fd, CMSG_DATA(&rights), sizeof peer_fd);
        }
    }

    int socket_ = -1;
    const heddle_grant_page* grant_ = nullptr;
    heddle_client_page* page_ = nullptr;

  public:
    int grant_fd = -1;  ///< as they came with WELCOME
    int page_fd = -1;
    int peer_fd = -1;  ///< of the latest PEER
    uint32_t id = 0;   ///< as WELCOME said
};

}  // namespace heddle::test
