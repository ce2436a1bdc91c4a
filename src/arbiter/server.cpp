#include "arbiter/server.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "arbiter/connection.hpp"
#include "base/failpoint.h"
#include "heddle/error.hpp"

namespace heddle {
namespace {

constexpr int kBacklog = 128;
constexpr int kAcceptedPerTurn = 64;
constexpr Nanoseconds kPause = std::chrono::milliseconds(50);  // before what failed is tried again

uint64_t nanoseconds_of(Time time) {
    return static_cast<uint64_t>(time.time_since_epoch().count());
}

[[noreturn]] void fail(int result, const std::string& what) {
    throw Error(ErrorCode::kSystem, fmt::format("{}: {}", what, std::strerror(-result)));
}

}  // namespace

Server::Server(ServerConfig config, Arbiter arbiter, Os& os, Clock& clock, int listening)
    : config_(std::move(config)),
      arbiter_(std::move(arbiter)),
      os_(os),
      clock_(clock),
      started_(clock.now()),
      idle_since_(started_),
      activated_(listening >= 0),
      listening_(listening),
      saved_(config_.state_path, os),
      fence_(os, config_.fence_tag) {
    epoll_ = Descriptor(os_.epoll_create());
    if (!epoll_.valid()) fail(epoll_.get(), "epoll_create");
    HEDDLE_FAILPOINT(server_has_epoll);
    if (listening_.valid())
        watch(listening_.get());
    else
        listen();
    if (!arbiter_.machine().synthetic() && limit_files_.emplace().fd() >= 0)
        on_readable(limit_files_->fd(), [this] { limits_were_written(); });
}

Server::~Server() = default;

void Server::listen() {
    listening_ = Descriptor(os_.socket_seqpacket());
    if (!listening_.valid()) fail(listening_.get(), "socket");
    HEDDLE_FAILPOINT(server_has_socket);
    const int bound = os_.bind_listen(listening_.get(), config_.path, kBacklog);
    if (bound == -ENAMETOOLONG)
        throw Error(ErrorCode::kLimit,
                    fmt::format("the socket's path has {} characters, and the system allows 107: {}",
                                config_.path.size(), config_.path));
    if (bound < 0) fail(bound, fmt::format("cannot listen at {}", config_.path));
    HEDDLE_FAILPOINT(server_listens);
    watch(listening_.get());
}

void Server::watch(int fd) {
    epoll_event event{EPOLLIN, {.fd = fd}};
    if (const int added = os_.epoll_control(epoll_.get(), EPOLL_CTL_ADD, fd, &event); added < 0)
        fail(added, "epoll_ctl");
}

void Server::on_readable(int fd, std::function<void()> callback) {
    callbacks_[fd] = std::move(callback);
    watch(fd);
}

void Server::look_for_fences() {
    tell_what_fences();
    fence_.remove_leftovers();
}

void Server::run() {
    while (turn() || somebody_came()) {
    }
}

/// Nobody can come from now on, and who had come just before is not lost. The socket that was passed to us
/// outlives us, and so do those who wait there.
bool Server::somebody_came() {
    if (stopping_ || activated_) return false;
    os_.end_listening(listening_.get(), config_.path);
    for (int i = 0; i < kBacklog; i += kAcceptedPerTurn) accept_some();
    if (connections_.empty()) return false;
    listen();
    return true;
}

bool Server::turn() {
    ++turn_;
    if (!std::exchange(restored_, true)) restore_clients();
    std::array<epoll_event, 64> events;
    const int ready = os_.epoll_wait(epoll_.get(), events.data(), events.size(), time_to_wait());
    if (ready < 0 && !is_passing(ready)) fail(ready, "epoll_wait");
    const bool has_clients = !connections_.empty() || !away_.empty();  // until now, that is
    closed_.clear();
    if (short_of_memory()) (void)config_.reserve->refill();
    for (int i = 0; i < ready; ++i) {
        const auto& event = events[static_cast<size_t>(i)];
        const int fd = event.data.fd;
        if (const auto callback = callbacks_.find(fd); callback != callbacks_.end()) {
            callback->second();
            continue;
        }
        if (fd == listening_.get()) {
            accept_some();
            continue;
        }
        if (std::ranges::find(closed_, fd) != closed_.end()) continue;
        if (const auto dead = sockets_by_pidfd_.find(fd); dead != sockets_by_pidfd_.end()) {
            close(*connections_.at(dead->second), true);
        } else if (const auto gone = away_by_pidfd_.find(fd); gone != away_by_pidfd_.end()) {
            forget_away(away_.find(gone->second), true);
        } else if (const auto place = connections_.find(fd); place != connections_.end()) {
            // A broken socket too: what it does not take holds up nothing.
            if ((event.events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) send_or_wait(*place->second);
            if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && connections_.contains(fd))
                receive_from(*connections_.at(fd));
        }
    }
    on_turn();
    end_silent_handshakes();
    forget_those_away_too_long();
    look_at_fenced();
    if (arbiter_.lacking()) take_lent(false);
    if (accept_again_at_ && clock_.now() >= *accept_again_at_) resume_accepting();
    if (look_at_unread_at_ && clock_.now() >= *look_at_unread_at_) {
        forget_what_was_read();
        look_at_unread_at_.reset();
        unread_rest_ *= 2;
        if (!unread_.empty()) look_at_unread_at_ = clock_.now() + unread_rest_;
    }
    if (read_again_at_ && clock_.now() >= *read_again_at_) {
        read_again_at_.reset();
        read_pages();
    }
    if (std::exchange(retry_writable_, false))
        for (const auto& [fd, connection] : connections_) send_or_wait(*connection);
    if (const auto deadline = arbiter_.next_deadline(); deadline && clock_.now() >= *deadline) {
        HEDDLE_FAILPOINT(server_ticks);
        look_for_those_that_are_stopped();
        if (arbiter_.sampling()) read_pages();
        arbiter_.tick(clock_.now());
    }
    answer_one();
    apply_actions();
    look_at_limits();
    apply_actions();
    if (has_clients || !connections_.empty() || !away_.empty()) idle_since_ = clock_.now();
    return !stopping_ && !(config_.idle_exit && clock_.now() - idle_since_ >= *config_.idle_exit);
}

std::optional<Nanoseconds> Server::time_to_wait() const {
    if (!asking_.empty() || !limits_unknown_.empty()) return Nanoseconds(0);
    std::optional<Time> next = arbiter_.next_deadline();
    const auto at = [&](Time time) { next = next ? std::min(*next, time) : time; };
    for (const auto& [fd, connection] : connections_)
        if (!connection->registered) at(connection->handshake_deadline);
    if (!away_.empty()) at(started_ + config_.away_at_most);
    for (const auto& [client, fenced] : fenced_) at(fenced.look_at);
    if (accept_again_at_) at(*accept_again_at_);
    if (look_at_unread_at_) at(*look_at_unread_at_);
    if (read_again_at_) at(*read_again_at_);
    if (retry_writable_) at(clock_.now() + kPause);
    if (config_.idle_exit && connections_.empty() && away_.empty()) at(idle_since_ + *config_.idle_exit);
    if (!next) return std::nullopt;
    return std::max(Nanoseconds(0), *next - clock_.now());
}

void Server::accept_some() {
    if (short_of_memory()) return pause_accepting();
    for (int i = 0; i < kAcceptedPerTurn; ++i) {
        Descriptor socket(os_.accept(listening_.get()));
        if (!socket.valid()) {
            const int failure = socket.get();
            if (failure == -EINTR || failure == -ECONNABORTED) continue;
            if (failure == -EAGAIN) return;
            log(fmt::format("accept: {}", std::strerror(-failure)));
            return pause_accepting();
        }
        auto connection = std::make_unique<Connection>();
        connection->handshake_deadline = clock_.now() + config_.handshake;
        const int known = os_.peer_credentials(socket.get(), connection->peer);
        if (known < 0 && known != -ENODATA) continue;
        const int fd = socket.get();
        connection->socket = std::move(socket);
        epoll_event event{EPOLLIN, {.fd = fd}};
        if (os_.epoll_control(epoll_.get(), EPOLL_CTL_ADD, fd, &event) < 0) continue;
        HEDDLE_FAILPOINT(server_accepted);
        Connection& accepted = *connections_.emplace(fd, std::move(connection)).first->second;
        if (known < 0)
            refuse(accepted, HEDDLE_REFUSED_PERMISSION,
                   "the arbiter cannot see your process, which is in another pid namespace: start one there");
        else
            refuse_unwanted(accepted);
    }
}

/// Out of descriptors or memory: who waits stays in the backlog, and those we have are served meanwhile. The
/// listening socket stays readable, so looking at it would only burn a CPU.
void Server::pause_accepting() {
    epoll_event nothing{0, {.fd = listening_.get()}};
    (void)os_.epoll_control(epoll_.get(), EPOLL_CTL_MOD, listening_.get(), &nothing);
    accept_again_at_ = clock_.now() + kPause;
}

void Server::resume_accepting() {
    epoll_event event{EPOLLIN, {.fd = listening_.get()}};
    if (os_.epoll_control(epoll_.get(), EPOLL_CTL_MOD, listening_.get(), &event) == 0)
        accept_again_at_.reset();
    else
        accept_again_at_ = clock_.now() + kPause;
}

void Server::refuse_unwanted(Connection& connection) {
    const uid_t user = connection.peer.uid;
    const bool stranger = user != ::getuid() && user != 0;
    // Connections that were closed count as long as there is something to read in them.
    forget_what_was_read();
    const size_t all = connections_.size() + unread_.size();
    const auto has =
        std::ranges::count_if(connections_, [&](const auto& c) { return c.second->peer.uid == user; }) +
        std::ranges::count(unread_, user, &Unread::user);
    if (all > static_cast<size_t>(config_.connections)) {
        refuse(connection, HEDDLE_REFUSED_FULL,
               fmt::format("there are {} connections already", config_.connections));
    } else if (stranger && !config_.other_users) {
        refuse(connection, HEDDLE_REFUSED_PERMISSION,
               fmt::format("this arbiter serves user {} only; start your own, or ask for a system-wide one",
                           ::getuid()));
    } else if (stranger && has > config_.connections_per_user) {
        refuse(connection, HEDDLE_REFUSED_FULL,
               fmt::format("user {} has {} connections already", user, config_.connections_per_user));
    }
}

void Server::forget_what_was_read() {
    std::erase_if(unread_, [this](const Unread& one) { return os_.unread_bytes(one.socket.get()) == 0; });
}

/// One message a turn: it may have something decided, and others are heard before the next.
void Server::receive_from(Connection& connection) {
    if (connection.asked != Asked::kNothing) return;
    alignas(8) std::array<std::byte, HEDDLE_MESSAGE_BYTES> bytes;
    const ssize_t got = os_.receive(connection.socket.get(), bytes.data(), bytes.size());
    if (is_passing(got)) return;
    if (got <= 0) return close(connection, got < 0);
    const auto length = static_cast<size_t>(got);
    if (length > bytes.size())
        return refuse(connection, HEDDLE_REFUSED_MALFORMED,
                      fmt::format("a message of {} bytes is too long", length));
    HEDDLE_FAILPOINT(server_received);
    handle(connection, decode_request(std::span(bytes).first(length)));
}

void Server::answer_later(Connection& connection, Asked asked) {
    connection.asked = asked;
    asking_.push_back(connection.socket.get());
}

/// An answer takes as long as hundreds of other messages: one a turn, whoever asks, so that grants do not
/// wait.
void Server::answer_one() {
    while (!asking_.empty()) {
        const auto place = connections_.find(asking_.front());
        asking_.pop_front();
        if (place == connections_.end()) continue;
        Connection& connection = *place->second;
        if (connection.asked != Asked::kNothing && !connection.outgoing.empty()) {
            connection.answer_waits = true;
            want_writable(connection, true);
            continue;
        }
        switch (std::exchange(connection.asked, Asked::kNothing)) {
            case Asked::kNothing:
                continue;  // another connection, with the number of one that has gone
            case Asked::kStatus:
                read_pages();
                return send_status(connection);
            case Asked::kWatch:
                return start_watching(connection);
        }
    }
}

void Server::handle(Connection& connection, Request request) {
    if (const auto* bad = std::get_if<BadRequest>(&request))
        return refuse(connection, bad->code, bad->reason);
    const bool says_hello = std::holds_alternative<HelloRequest>(request);
    if (says_hello == connection.registered)
        return refuse(connection, HEDDLE_REFUSED_MALFORMED,
                      says_hello ? "the client is registered already" : "the first message has to be HELLO");
    const bool grows = says_hello || std::holds_alternative<StatusRequest>(request) ||
                       std::holds_alternative<WatchRequest>(request);
    if (grows && short_of_memory())
        return refuse(connection, HEDDLE_REFUSED_FULL, "the arbiter has no memory left; try again later");
    if (const auto* hello_request = std::get_if<HelloRequest>(&request))
        return hello(connection, *hello_request);
    if (std::holds_alternative<StatusRequest>(request)) return answer_later(connection, Asked::kStatus);
    if (std::holds_alternative<WatchRequest>(request)) return answer_later(connection, Asked::kWatch);
    if (connection.client == ClientId{})
        return refuse(connection, HEDDLE_REFUSED_MALFORMED, "an observer has no CPUs to speak of");
    if (arbiter_.is_stopped(connection.client)) goes_on(connection);
    if (std::holds_alternative<DemandRequest>(request)) {
        HEDDLE_FAILPOINT(server_looks_at_demand);
        read_page(connection, true);
    } else if (std::holds_alternative<MappedRequest>(request)) {
        mapped(connection);
    } else if (std::holds_alternative<ReleasedRequest>(request)) {
        read_releases(connection, {}, false);
        for (const ClientId peer : std::vector(connection.peers))
            if (Connection* lender = connection_of(peer); lender != nullptr)
                read_releases(*lender, {}, false);
        read_page(connection, true);
    } else if (const auto* left = std::get_if<LeftRequest>(&request)) {
        HEDDLE_FAILPOINT(server_hears_of_leaving);
        read_releases(connection, arbiter_.leaving_of(connection.client), true);
        arbiter_.obeyed(connection.client, left->epoch, clock_.now());
        end_fence_of_one_that_obeys(connection.client, left->epoch);
    } else if (const auto* limits = std::get_if<LimitsRequest>(&request)) {
        HEDDLE_FAILPOINT(server_changes_limits);
        arbiter_.set_limits(connection.client, limits->min, limits->max, limits->weight, clock_.now());
    }
}

void Server::refuse(Connection& connection, uint32_t code, const std::string& reason) {
    HEDDLE_FAILPOINT(server_refuses);
    log(fmt::format("refused pid {}: {}", connection.peer.pid, reason));
    auto message = message_of<heddle_refused>(HEDDLE_REFUSED);
    message.code = code;
    copy_text(message.text, sizeof message.text, reason);
    (void)os_.send(connection.socket.get(), &message, sizeof message, {});
    close(connection, false);
}

void Server::close(Connection& connection, bool died) {
    const int fd = connection.socket.get();
    const ClientId client = connection.client;
    const pid_t process = connection.peer.pid;
    HEDDLE_FAILPOINT(server_closes);
    if (client != ClientId{}) read_releases(connection, arbiter_.cpus_of(client), false);
    closed_.push_back(fd);
    if (connection.pidfd.valid()) {
        closed_.push_back(connection.pidfd.get());
        sockets_by_pidfd_.erase(connection.pidfd.get());
    }
    sockets_by_client_.erase(client);
    connection.release_pages(os_);
    watch_limits(connection, {});
    if (connection.shown_pages && os_.unread_bytes(fd) > 0) {
        (void)os_.epoll_control(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
        os_.hang_up(fd);
        unread_.push_back({std::move(connection.socket), connection.peer.uid});
        unread_rest_ = kPause;
        look_at_unread_at_ = clock_.now() + unread_rest_;
    }
    connections_.erase(fd);  // closing a descriptor takes it out of the epoll
    HEDDLE_FAILPOINT(server_closed);
    if (client != ClientId{}) {
        forget_peer(client);
        forget_fenced(client, process, died);
        if (const auto place = places_.extract(client)) saved_.remove(place.mapped());
        arbiter_.leave(client, died, clock_.now());
        log(fmt::format("client {} {}", client.value, died ? "died" : "left"));
    }
}

void Server::end_silent_handshakes() {
    const Time now = clock_.now();
    std::vector<Connection*> silent;
    for (const auto& [fd, connection] : connections_)
        if (!connection->registered && now >= connection->handshake_deadline)
            silent.push_back(connection.get());
    for (Connection* connection : silent)
        refuse(*connection, HEDDLE_REFUSED_MALFORMED, "no HELLO came in time");
}

void Server::read_pages() {
    for (const auto& [client, fd] : sockets_by_client_) {
        read_releases(*connections_.at(fd), {}, false);
        read_page(*connections_.at(fd), false);
    }
}

void Server::read_page(Connection& connection, bool urgent) {
    if (connection.client_page() == nullptr) return;
    const uint32_t demand = connection.client_page()->demand.load();
    const uint64_t since = connection.client_page()->since_ns.load(std::memory_order_relaxed);
    const Time now = clock_.now();
    const auto threads = [](const heddle_atomic_u32& word) {
        return static_cast<int>(std::min(word.load(std::memory_order_relaxed), uint32_t{HEDDLE_MAX_CPUS}));
    };
    arbiter_.needs_together(
        connection.client,
        {threads(connection.client_page()->together), threads(connection.client_page()->meeting)}, now);
    const Time lasting{Nanoseconds(static_cast<int64_t>(std::min(since, nanoseconds_of(now))))};
    arbiter_.observe(connection.client, static_cast<int>(std::min(demand, uint32_t{HEDDLE_MAX_CPUS})),
                     lasting, urgent, now);
}

Server::Connection* Server::connection_of(ClientId client) const {
    const auto place = sockets_by_client_.find(client);
    return place == sockets_by_client_.end() ? nullptr : connections_.at(place->second).get();
}

}  // namespace heddle
