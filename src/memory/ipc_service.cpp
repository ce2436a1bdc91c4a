#include "memory/ipc_service.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/clock.hpp"
#include "base/packet_socket.hpp"
#include "memory/service_thread.hpp"
#include "memory/starting_alone.hpp"

namespace heddle::memory {
namespace {

constexpr size_t kMostPeers = 512;
constexpr int kBacklog = 64;
/// Of one client, before the others have their turn.
constexpr int kPacketsPerTurn = 64;
/// Descriptors on their way to one client, which has not read all. The system allows a user as many in all as
/// a process may have.
constexpr size_t kMostShown = 8;
constexpr Nanoseconds kRetryAfter = std::chrono::milliseconds(5);

// What an event is of: the three descriptors that are there once, and two of each peer.
constexpr uint64_t kStop = 0, kListening = 1, kRetry = 2;
constexpr uint64_t socket_event(uint64_t peer) {
    return 2 * peer;
}
constexpr uint64_t pidfd_event(uint64_t peer) {
    return 2 * peer + 1;
}

[[noreturn]] void fail(const std::string& what, int reason) {
    throw Error(ErrorCode::kSystem, fmt::format("{}: {}", what, std::strerror(reason)));
}

}  // namespace

IpcService::IpcService(ServerState& server, std::string path, Os& os)
    : server_(server),
      path_(path.empty() ? ipc::usual_path() : std::move(path)),
      os_(os),
      epoll_(os_.epoll_create()),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      reserve_(os_.epoll_create()),
      retry_(os_.timer_create()) {
    if (!epoll_.valid() || !stop_.valid() || !retry_.valid()) fail("cannot watch sockets", errno);
    listen();
    last_peer_ = kListening;
    try {
        for (const auto& [fd, event] :
             {std::pair{listening_.get(), kListening}, {stop_.get(), kStop}, {retry_.get(), kRetry}}) {
            epoll_event wanted{EPOLLIN, {.u64 = event}};
            if (const int result = os_.epoll_control(epoll_.get(), EPOLL_CTL_ADD, fd, &wanted); result < 0)
                fail("cannot watch sockets", -result);
        }
        clerk_ = service_thread([this] { run_clerk(); });
        thread_ = service_thread([this] { run(); });
    } catch (...) {
        end_clerk();
        remove_socket_file();
        throw;
    }
}

void IpcService::end_clerk() {
    if (!clerk_.joinable()) return;
    {
        const std::scoped_lock lock(clerk_mutex_);
        stopping_ = true;
    }
    for_clerk_.notify_one();
    clerk_.join();
}

void IpcService::listen() {
    if (path_.size() >= sizeof(sockaddr_un::sun_path))
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("{} is too long for a socket's name, which may have {} characters: choose a "
                                "shorter path",
                                path_, sizeof(sockaddr_un::sun_path) - 1));
    listening_ = Descriptor(os_.socket_seqpacket());
    if (!listening_.valid()) fail("cannot make a socket", errno);
    const StartingAlone alone(path_);
    int result = os_.bind_listen(listening_.get(), path_, kBacklog);
    if (result == -EADDRINUSE && is_abandoned_socket(path_)) {
        ::unlink(path_.c_str());
        result = os_.bind_listen(listening_.get(), path_, kBacklog);
    }
    struct stat there {};
    if (result == -EADDRINUSE && ::lstat(path_.c_str(), &there) == 0 && S_ISSOCK(there.st_mode))
        throw Error(
            ErrorCode::kUnavailable,
            fmt::format("{} is in use by another program, a memory server perhaps: choose another path",
                        path_));
    if (result < 0) fail(fmt::format("cannot listen at {}", path_), -result);
    if (::lstat(path_.c_str(), &there) == 0) socket_file_ = {there.st_dev, there.st_ino};
}

void IpcService::remove_socket_file() const {
    const StartingAlone alone(path_);
    struct stat there {};
    if (::lstat(path_.c_str(), &there) == 0 && socket_file_ == std::pair{there.st_dev, there.st_ino})
        ::unlink(path_.c_str());
}

IpcService::~IpcService() {
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof one);
    thread_.join();
    remove_socket_file();
    while (!peers_.empty()) close(peers_.begin()->first);
    end_clerk();
}

void IpcService::run() {
    epoll_event events[32];
    while (true) {
        const int count = os_.epoll_wait(epoll_.get(), events, std::size(events), {});
        for (int i = 0; i < count; ++i) {
            const uint64_t event = events[i].data.u64;
            if (event == kStop) return;
            if (event == kRetry) {
                retry();
                continue;
            }
            if (event == kListening) {
                accept_one();
                continue;
            }
            const std::shared_ptr<Peer> peer = peer_of(event / 2);
            if (!peer) continue;
            if (event == pidfd_event(event / 2)) {
                end(*peer);
                continue;
            }
            // It reads and sends no more, and what it has sent is there: without an end this is told for
            // ever.
            if ((events[i].events & EPOLLHUP) != 0) {
                end(*peer);
                continue;
            }
            if ((events[i].events & EPOLLOUT) != 0) flush(*peer);
            if ((events[i].events & (EPOLLIN | EPOLLERR)) != 0) receive(peer);
        }
    }
}

void IpcService::accept_one() {
    const int accepted = os_.accept(listening_.get());
    if (accepted == -EMFILE || accepted == -ENFILE) return refuse_one();
    if (accepted == -ENOMEM || accepted == -ENOBUFS) return stop_listening_for_now();
    Descriptor socket(accepted);
    if (!socket.valid()) return;
    auto peer = std::make_shared<Peer>();
    const uint64_t id = ++last_peer_;
    IpcSession::Host& host = *this;
    peer->session = std::make_shared<IpcSession>(server_, host, id);
    peer->socket = std::move(socket);
    const auto refuse = [&](ErrorCode code, const std::string& why) {
        (void)send(*peer, {ipc::packet_of(1, ipc::Failure{code, {}, why}), {}, {}});
    };
    if (os_.peer_credentials(peer->socket.get(), peer->who) < 0) return;
    if (peer->who.uid != ::getuid() && peer->who.uid != 0)
        return refuse(ErrorCode::kPermission,
                      fmt::format("this memory server serves user {} only; start your own", ::getuid()));
    if (peers_.size() >= kMostPeers)
        return refuse(ErrorCode::kLimit, fmt::format("there are {} clients already", kMostPeers));
    peer->pidfd = Descriptor(os_.peer_pidfd(peer->socket.get(), peer->who.pid));
    if (!peer->pidfd.valid()) return refuse(ErrorCode::kSystem, "the kernel does not tell who the client is");
    epoll_event of_pid{EPOLLIN, {.u64 = pidfd_event(id)}}, of_socket{EPOLLIN, {.u64 = socket_event(id)}};
    if (os_.epoll_control(epoll_.get(), EPOLL_CTL_ADD, peer->pidfd.get(), &of_pid) < 0 ||
        os_.epoll_control(epoll_.get(), EPOLL_CTL_ADD, peer->socket.get(), &of_socket) < 0)
        return refuse(ErrorCode::kSystem, "the server cannot watch one more client");
    const std::scoped_lock lock(peers_mutex_);
    peers_.emplace(id, std::move(peer));
}

void IpcService::refuse_one() {
    reserve_ = Descriptor();
    if (const Descriptor socket(os_.accept(listening_.get())); socket.valid()) {
        const Packet refusal =
            ipc::packet_of(1, ipc::Failure{ErrorCode::kLimit,
                                           {},
                                           "the server has no descriptor left for one more client: raise its "
                                           "limit (ulimit -n), or end some clients"});
        (void)os_.send(socket.get(), refusal.data(), refusal.size(), {});
    }
    reserve_ = Descriptor(os_.epoll_create());
    if (!reserve_.valid()) stop_listening_for_now();
}

void IpcService::stop_listening_for_now() {
    listens_ = false;
    watch_listening(0);
    retry_soon();
}

void IpcService::watch_listening(uint32_t events) {
    epoll_event wanted{events, {.u64 = kListening}};
    (void)os_.epoll_control(epoll_.get(), EPOLL_CTL_MOD, listening_.get(), &wanted);
}

/// Not later for those that ask again.
void IpcService::retry_soon() {
    if (will_retry_.exchange(true)) return;
    if (os_.timer_set(retry_.get(), SteadyClock().now() + kRetryAfter) < 0) will_retry_.store(false);
}

void IpcService::retry() {
    uint64_t passed;
    (void)!::read(retry_.get(), &passed, sizeof passed);
    will_retry_.store(false);
    if (!reserve_.valid()) reserve_ = Descriptor(os_.epoll_create());
    if (!reserve_.valid()) {
        retry_soon();
    } else if (!listens_) {
        listens_ = true;
        watch_listening(EPOLLIN);
    }
    for (const auto& [id, peer] : peers_) flush(*peer);
}

std::shared_ptr<IpcService::Peer> IpcService::peer_of(uint64_t id) {
    const std::scoped_lock lock(peers_mutex_);
    const auto found = peers_.find(id);
    return found == peers_.end() ? nullptr : found->second;
}

void IpcService::receive(const std::shared_ptr<Peer>& peer) {
    for (int i = 0; i < kPacketsPerTurn; ++i) {
        {
            const std::scoped_lock lock(peer->mutex);
            if (!peer->waiting.empty()) return;  // it is to read first
        }
        if (!take_packet(*peer)) return;
    }
}

bool IpcService::take_packet(Peer& peer) {
    std::byte buffer[ipc::kMaxPacket];
    const ssize_t size = os_.receive(peer.socket.get(), buffer, sizeof buffer);
    // It has closed before it had read all: what it had sent is still there.
    if (size == -ECONNRESET) return true;
    if (is_passing(size)) return false;
    if (size > 0 && static_cast<size_t>(size) <= sizeof buffer &&
        peer.session->handle({buffer, static_cast<size_t>(size)}))
        return true;
    close(peer.session->id());
    return false;
}

void IpcService::end(Peer& peer) {
    // A child of it that has the socket, too, sends no more.
    ::shutdown(peer.socket.get(), SHUT_RD);
    while (take_packet(peer)) {
    }
    close(peer.session->id());
}

void IpcService::close(uint64_t id) {
    std::shared_ptr<Peer> peer;
    {
        const std::scoped_lock lock(peers_mutex_);
        const auto found = peers_.extract(id);
        if (found.empty()) return;
        peer = found.mapped();
    }
    // An answer may still be on its way to it: the sockets go with the last of these.
    (void)os_.epoll_control(epoll_.get(), EPOLL_CTL_DEL, peer->socket.get(), nullptr);
    (void)os_.epoll_control(epoll_.get(), EPOLL_CTL_DEL, peer->pidfd.get(), nullptr);
    os_.hang_up(peer->socket.get());
    peer->session->close();
    const std::scoped_lock lock(peer->mutex);
    for (Outgoing& outgoing : peer->waiting) is_never_told(outgoing);
    peer->waiting.clear();
}

void IpcService::is_never_told(Outgoing& outgoing) {
    if (outgoing.untold) do_later(std::move(outgoing.untold));
}

IpcService::Sent IpcService::send(Peer& peer, const Outgoing& outgoing) {
    std::vector<int> descriptors;
    for (const auto& region : outgoing.regions) descriptors.push_back(region->descriptor());
    if (!descriptors.empty()) {
        if (os_.unread_bytes(peer.socket.get()) == 0) peer.shown = 0;
        if (peer.shown + descriptors.size() > kMostShown) return Sent::kLater;
    }
    const ssize_t sent =
        os_.send(peer.socket.get(), outgoing.packet.data(), outgoing.packet.size(), descriptors);
    if (sent == -EAGAIN || sent == -EINTR) return Sent::kWhenThereIsRoom;
    if (sent == -ETOOMANYREFS || is_passing(sent)) return Sent::kLater;
    if (sent < 0) return Sent::kNever;
    peer.shown += descriptors.size();
    return Sent::kYes;
}

void IpcService::wait_to_send(Peer& peer, Sent why) {
    watch(peer, why == Sent::kWhenThereIsRoom ? uint32_t{EPOLLOUT} : 0);
    if (why == Sent::kLater) retry_soon();
}

void IpcService::watch(const Peer& peer, uint32_t events) {
    epoll_event wanted{events, {.u64 = socket_event(peer.session->id())}};
    (void)os_.epoll_control(epoll_.get(), EPOLL_CTL_MOD, peer.socket.get(), &wanted);
}

void IpcService::reply(uint64_t session, Packet packet, IpcSession::Regions regions,
                       std::function<void()> untold) {
    const std::shared_ptr<Peer> peer = peer_of(session);
    Outgoing outgoing{std::move(packet), std::move(regions), std::move(untold)};
    if (!peer) return is_never_told(outgoing);
    const std::scoped_lock lock(peer->mutex);
    if (!peer->waiting.empty()) return peer->waiting.push_back(std::move(outgoing));
    const Sent sent = send(*peer, outgoing);
    // The thread will see that it is gone; who is there would wait for it for ever.
    if (sent == Sent::kNever) {
        ::shutdown(peer->socket.get(), SHUT_WR);
        is_never_told(outgoing);
    }
    if (sent == Sent::kYes || sent == Sent::kNever) return;
    peer->waiting.push_back(std::move(outgoing));
    wait_to_send(*peer, sent);
}

void IpcService::flush(Peer& peer) {
    const std::scoped_lock lock(peer.mutex);
    if (peer.waiting.empty()) return;
    while (!peer.waiting.empty()) {
        const Sent sent = send(peer, peer.waiting.front());
        if (sent == Sent::kWhenThereIsRoom || sent == Sent::kLater) return wait_to_send(peer, sent);
        if (sent == Sent::kNever) {
            ::shutdown(peer.socket.get(), SHUT_WR);
            is_never_told(peer.waiting.front());
        }
        peer.waiting.pop_front();
    }
    watch(peer, EPOLLIN);
}

void IpcService::do_later(std::function<void()> work) {
    {
        const std::scoped_lock lock(clerk_mutex_);
        to_do_.push_back(std::move(work));
    }
    for_clerk_.notify_one();
}

void IpcService::run_clerk() {
    std::unique_lock lock(clerk_mutex_);
    while (true) {
        for_clerk_.wait(lock, [&] { return stopping_ || !to_do_.empty(); });
        if (to_do_.empty()) return;
        const auto work = std::move(to_do_.front());
        to_do_.pop_front();
        lock.unlock();
        work();
        lock.lock();
    }
}

IpcServer::IpcServer(Server& server, const std::string& path)
    : state_(std::make_unique<IpcService>(*server.state_, path, Os::system())) {}
IpcServer::~IpcServer() = default;
const std::string& IpcServer::path() const noexcept {
    return state_->path();
}

}  // namespace heddle::memory
