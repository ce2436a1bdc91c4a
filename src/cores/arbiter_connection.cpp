#include "cores/arbiter_connection.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/failpoint.h"
#include "base/packet_socket.hpp"
#include "cores/arbiter_socket.hpp"
#include "cores/codec.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

constexpr int kAnswerWithinMs = 1000;
/// Some milliseconds: an arbiter that loses its core in the middle says CHANGED when it is done.
constexpr int kGrantTries = 10000;

/// One message of the arbiter, and the descriptors that came with it.
struct Packet {
    union {
        heddle_header header;
        heddle_welcome welcome;
        heddle_refused refused;
        heddle_peer peer;
        std::byte bytes[HEDDLE_MESSAGE_BYTES];
    };
    size_t length = 0;
    std::array<Descriptor, 2> pages;

    Packet() : bytes{} {}
    template <class Message>
    [[nodiscard]] bool is(heddle_message_type type) const {
        return length == sizeof(Message) && header.type == type;
    }
};

/// False: the peer is gone, or speaks something else.
bool read_packet(int fd, Packet& packet) {
    const ssize_t got = receive_packet(fd, packet.bytes, packet.pages);
    if (got <= 0) return false;
    packet.length = static_cast<size_t>(got);
    return packet.length >= sizeof packet.header && packet.header.magic == HEDDLE_PROTOCOL_MAGIC;
}

heddle_hello hello_of(const ClientDescription& description) {
    auto hello = message_of<heddle_hello>(HEDDLE_HELLO);
    hello.kind = HEDDLE_KIND_PROGRAM;
    hello.mode = HEDDLE_MODE_THREADS;
    hello.demand = static_cast<uint32_t>(description.demand);
    hello.min_cpus = static_cast<uint32_t>(description.min);
    hello.max_cpus = static_cast<uint32_t>(description.max);
    hello.weight = static_cast<uint32_t>(description.weight);
    hello.features = HEDDLE_FEATURE_HANDOVER;
    hello.allowed = mask_of(description.allowed);
    hello.held = mask_of(description.held);
    hello.owned = mask_of(description.owned);
    copy_text(hello.name, sizeof hello.name, description.name);
    return hello;
}

ErrorCode code_of(uint32_t refusal) {
    switch (refusal) {
        case HEDDLE_REFUSED_VERSION:
            return ErrorCode::kVersionMismatch;
        case HEDDLE_REFUSED_PERMISSION:
            return ErrorCode::kPermission;
        case HEDDLE_REFUSED_FULL:
            return ErrorCode::kLimit;
        default:
            return ErrorCode::kUnavailable;
    }
}

}  // namespace

PageMapping::PageMapping(int page, bool writable) {
    void* mapped = ::mmap(nullptr, HEDDLE_PAGE_BYTES, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                          MAP_SHARED, page, 0);
    if (mapped == MAP_FAILED) return;
    address_ = mapped;
    (void)::madvise(mapped, HEDDLE_PAGE_BYTES, MADV_DONTFORK);
}

PageMapping::PageMapping(PageMapping&& other) noexcept : address_(std::exchange(other.address_, nullptr)) {}

PageMapping& PageMapping::operator=(PageMapping&& other) noexcept {
    std::swap(address_, other.address_);
    return *this;
}

PageMapping::~PageMapping() {
    if (address_ != nullptr) ::munmap(address_, HEDDLE_PAGE_BYTES);
}

ArbiterConnection::ArbiterConnection(const std::string& path, const ClientDescription& description)
    : socket_(connect_to_arbiter(path)) {
    HEDDLE_FAILPOINT(client_connected);
    const heddle_hello hello = hello_of(description);
    Packet answer;
    // Who has hung up may have said before why it refuses: that is there to be read.
    const bool sent = ::send(socket_.get(), &hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello;
    if ((!sent && errno != EPIPE) || !wait_for_packet(socket_.get(), kAnswerWithinMs) ||
        !read_packet(socket_.get(), answer))
        throw Error(ErrorCode::kUnavailable, fmt::format("the arbiter at {} does not answer", path));
    if (answer.is<heddle_refused>(HEDDLE_REFUSED))
        throw Error(code_of(answer.refused.code),
                    fmt::format("the arbiter at {} refuses: {}", path,
                                std::string(answer.refused.text,
                                            ::strnlen(answer.refused.text, sizeof answer.refused.text))));
    if (!answer.is<heddle_welcome>(HEDDLE_WELCOME) || !answer.pages[1].valid())
        throw Error(ErrorCode::kVersionMismatch, fmt::format("what listens at {} is not an arbiter", path));
    HEDDLE_FAILPOINT(client_is_welcomed);
    client_ = answer.welcome.client;
    has_owners_ = answer.welcome.owners != 0;
    grant_ = PageMapping(answer.pages[0].get(), false);
    page_ = PageMapping(answer.pages[1].get(), true);
    if (!grant_.valid() || !page_.valid())
        throw Error(ErrorCode::kSystem,
                    fmt::format("cannot map the arbiter's pages: {}", std::strerror(errno)));
    HEDDLE_FAILPOINT(client_has_mapped);
    send(HEDDLE_MAPPED);
    HEDDLE_FAILPOINT(client_said_so);
}

void ArbiterConnection::send(heddle_message_type type) const noexcept {
    const auto message = message_of<heddle_header>(type);
    (void)::send(socket_.get(), &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool ArbiterConnection::receive(Message& message) const {
    Packet packet;
    if (!read_packet(socket_.get(), packet)) return false;
    message.type = static_cast<heddle_message_type>(packet.header.type);
    if (packet.is<heddle_peer>(HEDDLE_PEER) || packet.is<heddle_peer>(HEDDLE_PEER_GONE))
        message.client = packet.peer.client;
    message.page = std::move(packet.pages[0]);
    return true;
}

void ArbiterConnection::send_left(uint32_t epoch) const noexcept {
    HEDDLE_FAILPOINT(client_says_left);
    auto message = message_of<heddle_epoch_message>(HEDDLE_LEFT);
    message.epoch = epoch;
    (void)::send(socket_.get(), &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::optional<ArbiterConnection::Grant> ArbiterConnection::read_grant(const heddle_grant_page& page) {
    for (int tries = 0; tries < kGrantTries; ++tries) {
        Grant read;
        heddle_mask mask;
        // The reader's half of the sequence lock of protocol.h. acquire: the epoch is read again after these.
        read.epoch = page.epoch.load(std::memory_order_acquire);
        read.leaving = page.leaving.load(std::memory_order_acquire) != 0;
        for (size_t i = 0; i < HEDDLE_MASK_WORDS; ++i)
            mask.words[i] = page.mask[i].load(std::memory_order_acquire);
        if (read.epoch % 2 != 0 || page.epoch.load(std::memory_order_relaxed) != read.epoch) continue;
        read.cpus = cpus_of(mask);
        return read;
    }
    return std::nullopt;
}

}  // namespace heddle
