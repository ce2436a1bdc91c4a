#include "memory/ipc_connection.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/failpoint.h"
#include "base/packet_socket.hpp"
#include "base/settings.hpp"
#include "base/signals_blocked.hpp"
#include "memory/starting_alone.hpp"

namespace heddle::memory {
namespace {

constexpr int kWelcomedWithinMs = 5000;
/// Of a server that does not go on reading: it is stopped.
constexpr int kHeardWithinMs = 5000;

struct Incoming {
    std::byte bytes[ipc::kMaxPacket];
    size_t size = 0;
    std::vector<Descriptor> descriptors;
};

/// False: the peer is gone. Blocks.
bool read_packet(int fd, Incoming& incoming) {
    std::array<Descriptor, 4> descriptors;
    const ssize_t got = receive_packet(fd, incoming.bytes, descriptors);
    if (got <= 0) return false;
    for (Descriptor& one : descriptors)
        if (one.valid()) incoming.descriptors.push_back(std::move(one));
    incoming.size = static_cast<size_t>(got);
    return true;
}

/// `path` where it is not empty, or what HEDDLE_MEMORY names: then whoever listens there is meant. At the
/// usual place another user may have been first, where that is in a folder for all.
Descriptor connect_to(const std::string& path, bool named) {
    Descriptor socket = connect_to_packet_socket(path);
    if (!socket.valid() && errno == ECONNREFUSED) {
        // A server that starts there has made the socket a moment before it listens, and is alone for as
        // long.
        { const StartingAlone until_it_listens(path); }
        socket = connect_to_packet_socket(path);
    }
    if (!socket.valid() && (errno == EACCES || errno == EPERM))
        throw Error(ErrorCode::kPermission,
                    fmt::format("user {} may not use the memory server's socket {}: {}", ::geteuid(), path,
                                std::strerror(errno)));
    if (!socket.valid())
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("no memory server listens at {} ({}): start one by heddle memory serve, or "
                                "name its socket in HEDDLE_MEMORY",
                                path, std::strerror(errno)));
    ucred server{};
    socklen_t size = sizeof server;
    if (named || (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &server, &size) == 0 &&
                  (server.uid == ::geteuid() || server.uid == 0)))
        return socket;
    throw Error(
        ErrorCode::kPermission,
        fmt::format("the memory server at {} is of user {}, not of user {}: start your own by heddle memory "
                    "serve --socket PATH, or name this one in HEDDLE_MEMORY if you trust it with your data",
                    path, server.uid, ::geteuid()));
}

}  // namespace

IpcConnection::IpcConnection(const std::string& path)
    : path_(path.empty() ? ipc::usual_path() : path),
      socket_(connect_to(path_, !path.empty() || !setting("HEDDLE_MEMORY").empty())),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      server_process_(peer_process(socket_.get())) {
    HEDDLE_FAILPOINT(memory_connected);
    if (!wake_.valid())
        throw Error(ErrorCode::kSystem, fmt::format("cannot watch a socket: {}", std::strerror(errno)));
    say_hello();
    HEDDLE_FAILPOINT(memory_is_welcomed);
    const SignalsBlocked blocked;
    thread_ = std::thread([this] {
        run();
        const auto last_owner = std::move(until_it_ends_);
    });
    thread_id_ = thread_.get_id();
}

IpcConnection::~IpcConnection() {
    leave();
}

void IpcConnection::say_hello() {
    const Packet hello = ipc::packet_of(1, ipc::Hello{::program_invocation_short_name});
    last_number_ = 1;
    // A server that refuses has said so and closed: what it said is still there to be read.
    (void)!::send(socket_.get(), hello.data(), hello.size(), MSG_NOSIGNAL);
    Incoming incoming;
    if (!wait_for_packet(socket_.get(), kWelcomedWithinMs) || !read_packet(socket_.get(), incoming))
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("what listens at {} does not answer as a memory server", path_));
    const std::span<const std::byte> packet(incoming.bytes, incoming.size);
    const auto version = ipc::version_of(packet);
    if (version && *version != ipc::kVersion)
        throw Error(ErrorCode::kVersionMismatch,
                    fmt::format("the memory server at {} speaks version {} of the protocol, this program {}: "
                                "use one heddle for both",
                                path_, *version, ipc::kVersion));
    const auto reply = ipc::parse_reply(packet);
    if (reply && std::holds_alternative<ipc::Failure>(reply->content))
        ipc::raise(std::get<ipc::Failure>(reply->content));
    if (!reply || !std::holds_alternative<ipc::Welcome>(reply->content))
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("what listens at {} does not answer as a memory server", path_));
    rank_ = std::get<ipc::Welcome>(reply->content).rank;
}

void IpcConnection::leave() noexcept {
    if (!is_own_process()) {
        if (thread_.joinable()) thread_.detach();
        return;
    }
    {
        const Lock lock(mutex_);
        if (std::exchange(left_, true)) return;
        try {
            send(ipc::packet_of(0, ipc::Request(ipc::Goodbye{})));
        } catch (const std::exception&) {
            // Without memory it leaves as one that dies.
        }
    }
    send_rest();
    ::shutdown(socket_.get(), SHUT_RDWR);
    if (!is_own_thread()) return thread_.join();
    end_all();
    until_it_ends_ = shared_from_this();
    thread_.detach();
}

void IpcConnection::send_rest() noexcept {
    Lock lock(mutex_);
    flush(lock);
    while (!outgoing_.empty() && !gone_) {
        lock.unlock();
        pollfd room{socket_.get(), POLLOUT, 0};
        const int ready = ::poll(&room, 1, kHeardWithinMs);
        if (ready == 0 || (ready < 0 && errno != EINTR)) return;
        lock.lock();
        flush(lock);
    }
}

IpcConnection::Lock IpcConnection::locked() const {
    if (!is_own_process())
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("the client of the memory server at {} is of the process that this one was "
                                "forked from: make a new one here",
                                path_));
    return Lock(mutex_);
}

void IpcConnection::check_there() const {
    if (left_) throw MemoryError(MemoryErrorCode::kCancelled, "its client has left");
    if (gone_)
        throw Error(
            ErrorCode::kUnavailable,
            fmt::format("the memory server at {} is gone: make a new client when there is one again", path_));
}

// Sending. The caller has the lock.
void IpcConnection::send(Packet packet) {
    if (outgoing_.empty()) {
        const ssize_t sent = ::send(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        // One that is gone the thread will see.
        if (sent >= 0 || !is_passing(-errno)) return;
    }
    outgoing_.push_back(std::move(packet));
    const uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
}

void IpcConnection::flush(Lock&) {
    while (!outgoing_.empty()) {
        const Packet& packet = outgoing_.front();
        const ssize_t sent = ::send(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && is_passing(-errno)) return;
        outgoing_.pop_front();
    }
}

void IpcConnection::run() {
    while (take_turn())
        ;
}

bool IpcConnection::take_turn() {
    bool waits_for_room = false;
    {
        Lock lock(mutex_);
        flush(lock);
        waits_for_room = !outgoing_.empty();
    }
    pollfd ready[] = {{socket_.get(), static_cast<short>(POLLIN | (waits_for_room ? POLLOUT : 0)), 0},
                      {wake_.get(), POLLIN, 0},
                      {server_process_.get(), POLLIN, 0}};
    if (::poll(ready, std::size(ready), -1) < 0) return true;
    uint64_t count;
    if (ready[1].revents != 0) (void)!::read(wake_.get(), &count, sizeof count);
    const bool says_something = (ready[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
    const bool is_there = says_something ? receive() : ready[2].revents == 0;
    if (!is_there) end_all();
    return is_there;
}

bool IpcConnection::receive() {
    Incoming incoming;
    if (!read_packet(socket_.get(), incoming)) return false;
    auto reply = ipc::parse_reply({incoming.bytes, incoming.size});
    if (!reply) return false;
    HEDDLE_FAILPOINT(memory_was_answered);
    take(reply->number, {std::move(reply->content), std::move(incoming.descriptors)});
    return true;
}

void IpcConnection::take(uint64_t number, Answer answer) {
    Lock lock(mutex_);
    if (auto asked = questions_.extract(number)) {
        asked.mapped()->answer = std::move(answer);
        lock.unlock();
        return asked.mapped()->answered.signal();
    }
    auto found = running_.extract(number);
    if (found.empty()) return;
    if (found.mapped().writes) --writing_;
    const std::shared_ptr<OperationState> state = found.mapped().state;
    const bool tells = state->end(outcome_of(answer.content, found.mapped()));
    lock.unlock();
    if (tells) state->tell();
}

void IpcConnection::end_all() {
    Lock lock(mutex_);
    gone_ = true;
    const auto questions = std::exchange(questions_, {});
    const auto running = std::exchange(running_, {});
    held_.clear();
    std::exception_ptr why;
    try {
        check_there();
    } catch (...) {
        why = std::current_exception();
    }
    std::vector<std::shared_ptr<OperationState>> told;
    for (const auto& [number, one] : running)
        if (one.state->end(why)) told.push_back(one.state);
    lock.unlock();
    for (const auto& [number, question] : questions) question->answered.signal();
    for (const auto& state : told) state->tell();
}

}  // namespace heddle::memory
