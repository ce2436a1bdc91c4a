#include "memory/mesh.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "base/full_fence.hpp"
#include "base/packet_socket.hpp"
#include "memory/service_thread.hpp"
#include "memory/starting_alone.hpp"

namespace heddle::memory {
namespace {

constexpr uint32_t kVersion = 4;
constexpr auto kRetryPause = std::chrono::milliseconds(2);
/// After a packet the next one is looked for no longer than that.
constexpr auto kOwnVigil = std::chrono::microseconds(40);
constexpr auto kOthersVigil = std::chrono::microseconds(40);

/// The first packet of whoever connects. With it come the rings, the bell of whom it greets, and its own.
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
    if (folder.empty())
        throw Error(ErrorCode::kInvalidArgument,
                    "several ranks find each other in a folder: name one (ServerOptions::folder)");
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

Descriptor new_socket(int flags = 0) {
    Descriptor made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
    if (!made.valid()) fail("cannot make a socket");
    return made;
}

Descriptor new_bell() {
    Descriptor made(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!made.valid()) fail("cannot make an eventfd");
    return made;
}

/// Also one that has been rung and not heard.
void ring(const Descriptor& bell) {
    const uint64_t one = 1;
    (void)!::write(bell.get(), &one, sizeof one);
}

void silence(const Descriptor& bell) {
    uint64_t rung;
    (void)!::read(bell.get(), &rung, sizeof rung);
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

/// In the place of a socket that nobody listens on any more, as one that was killed leaves it.
bool bind_or_replace(int socket, const sockaddr_un& address) {
    const auto bound = [&] {
        return ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    };
    if (bound()) return true;
    if (errno != EADDRINUSE) return false;
    if (is_abandoned_socket(address.sun_path) && ::unlink(address.sun_path) == 0 && bound()) return true;
    errno = EADDRINUSE;
    return false;
}

}  // namespace

Mesh::Mesh(Rank self, Rank ranks, const std::string& folder, Nanoseconds patience)
    : self_(self),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      bell_(new_bell()),
      buffer_(kMaxPacket),
      reception_(*this),
      own_vigil_(kOwnVigil),
      others_vigil_(kOthersVigil) {
    if (!epoll_.valid()) fail("cannot watch sockets");
    for (Rank rank = 0; rank < ranks; ++rank) peers_.push_back(std::make_unique<Peer>());
    const Time deadline = SteadyClock().now() + patience;
    const Descriptor listening = new_socket(SOCK_NONBLOCK);
    const std::string path = path_of(folder, self);
    const sockaddr_un address = address_of(path);
    std::optional<StartingAlone> alone(path);
    if (!bind_or_replace(listening.get(), address))
        fail(fmt::format(
            "cannot have the socket {}{}", path,
            errno == EADDRINUSE ? ", which another rank of that number has, or another program" : ""));
    try {
        if (::listen(listening.get(), static_cast<int>(ranks)) != 0)
            fail(fmt::format("cannot listen on {}", path));
        alone.reset();
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
    send_what_waits(std::chrono::seconds(1));  // what was sent since
}

void Mesh::stop() {
    if (!thread_.joinable()) return;
    // While this rank still takes what others have for it: they may be at their end, too.
    send_what_waits(std::chrono::seconds(10));
    stopping_.store(true, std::memory_order_relaxed);
    ring(bell_);
    thread_.join();
}

/// What was sent still goes, for as long as its rank takes it; not to one that does not move any more.
void Mesh::send_what_waits(Nanoseconds longest) {
    const auto waits = [this](Rank rank) {
        Peer& peer = *peers_[rank];
        const std::scoped_lock lock(peer.mutex);
        if (peer.waiting.empty()) return false;
        pollfd ends[] = {{peer.socket.get(), POLLRDHUP, 0}, {peer.process.get(), POLLIN, 0}};
        return ::poll(ends, std::size(ends), 0) == 0;
    };
    const Time deadline = SteadyClock().now() + longest;
    for (Rank rank = 0; rank < ranks(); ++rank)
        while (waits(rank) && SteadyClock().now() < deadline) {
            flush(rank);
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
}

void Mesh::connect_to(Rank rank, const std::string& folder, Time deadline) {
    const sockaddr_un address = address_of(path_of(folder, rank));
    Descriptor socket = new_socket();
    while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        if (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR)
            fail(fmt::format("cannot connect to {}", address.sun_path));
        if (SteadyClock().now() > deadline) nobody_came(fmt::format("rank {}", rank), folder);
        std::this_thread::sleep_for(kRetryPause);
    }
    Hello hello;
    hello.rank = self_;
    hello.ranks = ranks();
    auto memory = std::make_unique<MemoryRegion>(sizeof(Rings), MemoryRegion::Sharing::kWritable);
    Peer& peer = *peers_[rank];
    peer.bell = new_bell();
    peer.its_bell = new_bell();
    const std::vector<int> given{memory->descriptor(), peer.its_bell.get(), peer.bell.get()};
    if (Os::system().send(socket.get(), &hello, sizeof hello, given) != sizeof hello)
        fail(fmt::format("cannot greet rank {}", rank));
    have_connection(rank, std::move(socket));
    have_rings(rank, std::move(memory));
}

void Mesh::accept_higher(Rank count, int listening, Time deadline) {
    for (Rank met = 0; met < count;) {
        if (!wait_for_packet(listening, milliseconds_until(deadline)))
            nobody_came(fmt::format("{} rank(s) above {}", count - met, self_), "it");
        Descriptor socket(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
        if (!socket.valid()) continue;
        Hello hello;
        Descriptor given[3];
        if (!wait_for_packet(socket.get(), milliseconds_until(deadline)) ||
            receive_packet(socket.get(), std::as_writable_bytes(std::span(&hello, 1)), given) !=
                sizeof hello ||
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
        if (!given[2].valid())
            throw Error(
                ErrorCode::kLimit,
                fmt::format("no descriptors are left for what is shared with rank {}: raise the limit "
                            "of open files (ulimit -n)",
                            hello.rank));
        Peer& peer = *peers_[hello.rank];
        have_connection(hello.rank, std::move(socket));
        peer.bell = std::move(given[1]);
        peer.its_bell = std::move(given[2]);
        have_rings(hello.rank, std::make_unique<MemoryRegion>(std::move(given[0]), sizeof(Rings), true));
        ++met;
    }
}

void Mesh::have_connection(Rank rank, Descriptor socket) {
    peers_[rank]->process = peer_process(socket.get());
    peers_[rank]->socket = std::move(socket);
}

void Mesh::have_rings(Rank rank, std::unique_ptr<MemoryRegion> memory) {
    // Zeroes are two empty rings.
    auto* const rings = reinterpret_cast<Rings*>(memory->data());
    Peer& peer = *peers_[rank];
    Direction& in = rank > self_ ? rings->to_lower : rings->to_higher;
    Direction& out = rank > self_ ? rings->to_higher : rings->to_lower;
    peer.in = &in.ring;
    peer.out = &out.ring;
    peer.in_woken_ns = &in.woken_ns;
    peer.out_woken_ns = &out.woken_ns;
    peer.memory = std::move(memory);
}

void Mesh::watch(const Descriptor& descriptor, uint32_t as_what) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = as_what;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor.get(), &event) != 0) fail("cannot watch sockets");
}

void Mesh::start(Listener& listener) {
    listener_ = &listener;
    for (Rank rank = 0; rank < ranks(); ++rank) {
        watch(rank == self_ ? bell_ : peers_[rank]->bell, rank);
        if (rank == self_) continue;
        watch(peers_[rank]->socket, ranks() + rank);
        if (peers_[rank]->process.valid()) watch(peers_[rank]->process, ranks() + rank);
    }
    thread_ = service_thread([this] { run(); });
}

void Mesh::wake(Peer& peer) {
    if (!peer.out->wakes()) return;
    peer.out_woken_ns->store(SteadyClock().now().time_since_epoch().count(), std::memory_order_relaxed);
    ring(peer.its_bell);
}

void Mesh::send(Rank to, Packet packet) {
    Peer& peer = *peers_[to];
    const std::scoped_lock lock(peer.mutex);
    if (peer.lost) return;
    if (!peer.waiting.empty() || !peer.out->push_or_wait(packet))
        peer.waiting.push_back(std::move(packet));
    else
        wake(peer);
}

void Mesh::flush(Rank rank) {
    Peer& peer = *peers_[rank];
    const std::scoped_lock lock(peer.mutex);
    bool pushed = false;
    for (; !peer.waiting.empty() && peer.out->push_or_wait(peer.waiting.front()); pushed = true)
        peer.waiting.pop_front();
    if (pushed) wake(peer);
}

void Mesh::lose(Rank rank) {
    Peer& peer = *peers_[rank];
    if (peer.gone.exchange(true, std::memory_order_relaxed)) return;
    {
        const std::scoped_lock lock(peer.mutex);
        peer.lost = true;
        peer.waiting.clear();
    }
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer.socket.get(), nullptr);
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer.process.get(), nullptr);
    listener_->lost(rank);
}

bool Mesh::take_from(Rank rank) {
    Peer& peer = *peers_[rank];
    if (rank == self_ || peer.gone.load(std::memory_order_relaxed) || peer.in->empty()) return false;
    const bool sound =
        peer.in->take(buffer_, [&](std::span<const std::byte> packet) { listener_->received(rank, packet); });
    if (peer.in->gives_room()) ring(peer.its_bell);
    if (!sound) lose(rank);
    return true;
}

bool Mesh::take_all() {
    bool some = false;
    for (Rank rank = 0; rank < ranks(); ++rank) some = take_from(rank) || some;
    return some;
}

bool Mesh::all_empty() const {
    return std::ranges::none_of(peers_, [](const auto& peer) {
        return peer->in != nullptr && !peer->gone.load(std::memory_order_relaxed) && !peer->in->empty();
    });
}

void Mesh::look_all() {
    for (const auto& peer : peers_)
        if (peer->in != nullptr) peer->in->looks();
}

bool Mesh::sleep_all() {
    for (const auto& peer : peers_)
        if (peer->in != nullptr) peer->in->sleeps();
    full_fence();
    return all_empty();
}

bool Mesh::begin_look() {
    return reception_.begin();
}

void Mesh::look(const std::function<bool()>& enough) {
    (void)others_vigil_.keep([&] {
        (void)take_all();
        return enough();
    });
}

void Mesh::end_look() {
    if (!reception_.end()) ring(bell_);
}

void Mesh::receive(std::span<const Rank> gone) {
    const auto lose_gone = [&] {
        for (const Rank rank : gone) lose(rank);
    };
    reception_.receive(lose_gone, [&](const auto& found) { (void)own_vigil_.keep(found); });
}

void Mesh::run() {
    epoll_event events[16];
    std::vector<Rank> gone;
    receive(gone);
    while (true) {
        const int count = ::epoll_wait(epoll_.get(), events, std::size(events), -1);
        gone.clear();
        for (int i = 0; i < count; ++i) {
            const uint32_t what = events[i].data.u32;
            if (what >= ranks()) {
                gone.push_back(what - ranks());
                continue;
            }
            if (what == self_) {
                silence(bell_);
                if (stopping_.load(std::memory_order_relaxed)) return;
                continue;
            }
            const Peer& peer = *peers_[what];
            silence(peer.bell);
            own_vigil_.came(Time(Nanoseconds(peer.in_woken_ns->load(std::memory_order_relaxed))));
            flush(what);
        }
        receive(gone);
    }
}

}  // namespace heddle::memory
