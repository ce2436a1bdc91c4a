#include "memory/mesh.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/signals_blocked.hpp"

namespace heddle::memory {
namespace {

constexpr uint32_t kVersion = 1;
constexpr auto kRetry = std::chrono::milliseconds(2);
/// After a packet the next one is looked for so long before the thread sleeps, since waking up takes longer
/// than most answers; but only where each rank has a CPU for that beside one that works and one that waits.
constexpr auto kAwake = std::chrono::microseconds(50);
constexpr unsigned kCpusOfARank = 3;

/// The first packet of whoever connects.
struct Hello {
    char magic[8] = {'h', 'e', 'd', 'm', 'e', 's', 'h', '\0'};
    uint32_t version = kVersion;
    uint32_t rank = 0;
    uint32_t ranks = 0;
};

[[noreturn]] void fail(const std::string& what) {
    throw Error(ErrorCode::kSystem, fmt::format("{}: {}", what, std::strerror(errno)));
}

std::string path_of(const std::string& folder, Rank rank) {
    return fmt::format("{}/rank-{}", folder, rank);
}

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path))
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "{} is too long for a socket's name, which may have {} characters: choose a folder with "
                "a shorter path",
                path, sizeof(address.sun_path) - 1));
    std::memcpy(address.sun_path, path.c_str(), path.size());
    return address;
}

Descriptor new_socket() {
    Descriptor made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!made.valid()) fail("cannot make a socket");
    return made;
}

[[noreturn]] void nobody_came(const std::string& who, const std::string& folder) {
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format(
            "{} did not come to {} in time: start all ranks, with the same folder and number of ranks", who,
            folder));
}

int milliseconds_until(Time deadline) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyClock().now());
    return static_cast<int>(std::max<int64_t>(0, left.count()));
}

}  // namespace

Mesh::Mesh(Rank self, Rank ranks, const std::string& folder, Nanoseconds patience)
    : self_(self), epoll_(::epoll_create1(EPOLL_CLOEXEC)), stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!epoll_.valid() || !stop_.valid()) fail("cannot watch sockets");
    for (Rank rank = 0; rank < ranks; ++rank) peers_.push_back(std::make_unique<Peer>());
    const Time deadline = SteadyClock().now() + patience;
    const Descriptor listening = new_socket();
    const std::string path = path_of(folder, self);
    const sockaddr_un address = address_of(path);
    if (::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        fail(fmt::format("cannot have the socket {}{}", path,
                         errno == EADDRINUSE ? ", which another rank of that number has, or had" : ""));
    try {
        if (::listen(listening.get(), static_cast<int>(ranks)) != 0)
            fail(fmt::format("cannot listen on {}", path));
        for (Rank rank = 0; rank < self; ++rank) connect_to(rank, folder, deadline);
        accept_higher(ranks - self - 1, listening.get(), deadline);
    } catch (...) {
        ::unlink(path.c_str());
        throw;
    }
    ::unlink(path.c_str());
}

Mesh::~Mesh() {
    stop();
}

void Mesh::stop() {
    if (!thread_.joinable()) return;
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof one);
    thread_.join();
}

void Mesh::connect_to(Rank rank, const std::string& folder, Time deadline) {
    const sockaddr_un address = address_of(path_of(folder, rank));
    Descriptor socket = new_socket();
    while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        if (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR)
            fail(fmt::format("cannot connect to {}", address.sun_path));
        if (SteadyClock().now() > deadline) nobody_came(fmt::format("rank {}", rank), folder);
        std::this_thread::sleep_for(kRetry);
    }
    Hello hello;
    hello.rank = self_;
    hello.ranks = ranks();
    if (::send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
        fail(fmt::format("cannot greet rank {}", rank));
    peers_[rank]->socket = std::move(socket);
}

void Mesh::accept_higher(Rank count, int listening, Time deadline) {
    for (Rank met = 0; met < count;) {
        pollfd ready{listening, POLLIN, 0};
        if (::poll(&ready, 1, milliseconds_until(deadline)) == 0)
            nobody_came(fmt::format("{} rank(s) above {}", count - met, self_), "it");
        Descriptor socket(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
        if (!socket.valid()) continue;
        Hello hello;
        ready.fd = socket.get();
        if (::poll(&ready, 1, milliseconds_until(deadline)) <= 0 ||
            ::recv(socket.get(), &hello, sizeof hello, 0) != sizeof hello ||
            std::memcmp(hello.magic, Hello().magic, sizeof hello.magic) != 0)
            continue;  // somebody else
        if (hello.version != kVersion)
            throw Error(
                ErrorCode::kVersionMismatch,
                fmt::format(
                    "rank {} speaks version {} of the protocol, this rank {}: use one heddle for all ranks",
                    hello.rank, hello.version, kVersion));
        if (hello.ranks != ranks() || hello.rank <= self_ || hello.rank >= ranks() ||
            peers_[hello.rank]->socket.valid())
            throw Error(
                ErrorCode::kInvalidArgument,
                fmt::format("a rank {} of {} came, where ranks {} to {} of {} are awaited, each once: is the "
                            "folder used twice?",
                            hello.rank, hello.ranks, self_ + 1, ranks() - 1, ranks()));
        peers_[hello.rank]->socket = std::move(socket);
        ++met;
    }
}

void Mesh::watch(Rank rank, bool for_writing) {
    epoll_event event{};
    event.events = EPOLLIN | (for_writing ? EPOLLOUT : 0u);
    event.data.u32 = rank;
    const int fd = peers_[rank]->socket.get();
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0 && errno == ENOENT)
        (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Mesh::start(Listener& listener) {
    listener_ = &listener;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = self_;  // which has no connection
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stop_.get(), &event) != 0) fail("cannot watch sockets");
    for (Rank rank = 0; rank < ranks(); ++rank)
        if (rank != self_) watch(rank, false);
    const SignalsBlocked blocked;
    thread_ = std::thread([this] { run(); });
}

void Mesh::send(Rank to, Packet packet) {
    Peer& peer = *peers_[to];
    const std::scoped_lock lock(peer.mutex);
    if (peer.lost) return;
    if (peer.waiting.empty()) {
        const ssize_t sent =
            ::send(peer.socket.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent >= 0) return;
        if (!is_passing(-errno)) return;  // the thread will see that it is lost
    }
    peer.waiting.push_back(std::move(packet));
    watch(to, true);
}

void Mesh::flush(Rank rank) {
    Peer& peer = *peers_[rank];
    const std::scoped_lock lock(peer.mutex);
    while (!peer.waiting.empty()) {
        const Packet& packet = peer.waiting.front();
        if (::send(peer.socket.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return;
        peer.waiting.pop_front();
    }
    watch(rank, false);
}

void Mesh::lose(Rank rank) {
    Peer& peer = *peers_[rank];
    {
        const std::scoped_lock lock(peer.mutex);
        if (std::exchange(peer.lost, true)) return;
        peer.waiting.clear();
        (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer.socket.get(), nullptr);
    }
    listener_->lost(rank);
}

void Mesh::receive(Rank rank) {
    std::byte buffer[kMaxPacket];
    while (true) {
        const ssize_t size = ::recv(peers_[rank]->socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
        if (size < 0 && is_passing(-errno)) return;
        if (size <= 0) return lose(rank);
        listener_->received(rank, {buffer, static_cast<size_t>(size)});
    }
}

void Mesh::run() {
    epoll_event events[16];
    const SteadyClock clock;
    Time awake_until{};
    const auto awake_for =
        std::thread::hardware_concurrency() >= kCpusOfARank * ranks() ? kAwake : kAwake * 0;
    while (true) {
        const bool awake = clock.now() < awake_until;
        const int count = ::epoll_wait(epoll_.get(), events, std::size(events), awake ? 0 : -1);
        if (count == 0) std::this_thread::yield();
        if (count > 0) awake_until = clock.now() + awake_for;
        for (int i = 0; i < count; ++i) {
            const Rank rank = events[i].data.u32;
            if (rank == self_) return;
            if ((events[i].events & EPOLLOUT) != 0) flush(rank);
            if ((events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) receive(rank);
        }
    }
}

}  // namespace heddle::memory
