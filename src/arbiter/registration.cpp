// How the server takes clients in: HELLO, and WELCOME or REFUSED.
#include <sys/epoll.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "arbiter/connection.hpp"
#include "arbiter/server.hpp"
#include "base/failpoint.h"

namespace heddle {
namespace {

constexpr int kMostGenerations = 64;  // that are looked at

}  // namespace

void Server::hello(Connection& connection, const HelloRequest& request) {
    HEDDLE_FAILPOINT(server_says_hello);
    const int pidfd = os_.peer_pidfd(connection.socket.get(), connection.peer.pid);
    const bool has_no_room = pidfd == -EMFILE || pidfd == -ENFILE || pidfd == -ENOMEM || pidfd == -ENOBUFS;
    if (pidfd < 0)
        return refuse(connection, has_no_room ? HEDDLE_REFUSED_FULL : HEDDLE_REFUSED_PERMISSION,
                      fmt::format("no pidfd of process {}: {}", connection.peer.pid, std::strerror(-pidfd)));
    connection.pidfd = Descriptor(pidfd);
    epoll_event event{EPOLLIN, {.fd = pidfd}};
    if (const int added = os_.epoll_control(epoll_.get(), EPOLL_CTL_ADD, pidfd, &event); added < 0)
        return refuse(connection, HEDDLE_REFUSED_FULL, std::strerror(-added));
    sockets_by_pidfd_[pidfd] = connection.socket.get();
    HEDDLE_FAILPOINT(server_has_pidfd);
    const Reservation asks{request.min, arbiter_.policy().has_owners() ? request.owned : CpuSet{}};
    if (request.observer) {
        connection.registered = true;
        connection.stands_for = asks;
        auto welcome = message_of<heddle_welcome>(HEDDLE_WELCOME);
        welcome.cpus = static_cast<uint32_t>(arbiter_.cpus().count());
        queue(connection, welcome);
        return send_or_wait(connection);
    }
    if (!connection.make_pages(os_))
        return refuse(connection, HEDDLE_REFUSED_FULL, "no memory for the client's pages");
    HEDDLE_FAILPOINT(server_has_pages);
    fence_.admit(connection.peer.pid);
    connection.client_page()->demand = static_cast<uint32_t>(request.demand);
    Registration registration{request.name,        static_cast<uint32_t>(connection.peer.pid),
                              connection.peer.uid, request.demand,
                              request.min,         request.max,
                              request.weight,      request.allowed,
                              request.held,        who_returns(connection, request),
                              request.owned,       around(connection, asks)};
    take_lent(true);  // before CPUs in use are asked back for the newcomer
    ClientId client;
    const Refusal refusal = arbiter_.join(registration, clock_.now(), client);
    if (refusal != Refusal::kNone) return refuse_registration(connection, refusal, request);
    limits_unknown_.push_back(client);
    HEDDLE_FAILPOINT(server_has_joined);
    const auto process = os_.process_status(connection.peer.pid);
    const auto place = places_.extract(registration.returns);
    places_[client] =
        saved_.add({connection.peer.pid, connection.peer.uid, process ? process->started : 0, request.name,
                    arbiter_.cpus_of(client), arbiter_.reservation_of(client), arbiter_.job_of(client)},
                   place ? place.mapped() : -1);
    if (const auto returned = away_.find(registration.returns); returned != away_.end())
        forget_away(returned, false);
    connection.registered = true;
    connection.client = client;
    connection.can_hand_over = request.hands_over;
    connection.binds_threads = request.mode == HEDDLE_MODE_THREADS;
    sockets_by_client_[client] = connection.socket.get();
    apply_actions();  // the grant page is filled before the client sees it
    auto welcome = message_of<heddle_welcome>(HEDDLE_WELCOME);
    welcome.client = client.value;
    welcome.cpus = static_cast<uint32_t>(arbiter_.cpus().count());
    welcome.owners = arbiter_.policy().has_owners() ? 1 : 0;
    HEDDLE_FAILPOINT(server_welcomes);
    const ssize_t sent = os_.send(connection.socket.get(), &welcome, sizeof welcome,
                                  {connection.grant_fd.get(), connection.client_fd.get()});
    HEDDLE_FAILPOINT(server_welcomed);
    connection.wake_pending = false;
    connection.shown_pages = true;
    connection.grant_fd = Descriptor();
    if (!connection.can_hand_over) connection.client_fd = Descriptor();
    if (sent < 0) return close(connection, false);
    log(fmt::format("client {} joined: {} (pid {})", client.value, request.name, connection.peer.pid));
}

/// The nearest client around this one, if it asks for the same. Else the nearest program that takes no part
/// and was to have the same; else 0.
uint32_t Server::around(const Connection& connection, const Reservation& asks) const {
    if (asks == Reservation{}) return 0;
    std::multimap<pid_t, Reservation> clients;
    std::set<pid_t> observers;
    for (const auto& [fd, other] : connections_)
        if (other->client != ClientId{})
            clients.emplace(other->peer.pid, arbiter_.reservation_of(other->client));
        else if (other->stands_for == asks)
            observers.insert(other->peer.pid);
    for (const auto& [client, away] : away_)
        clients.emplace(away.process.pid, arbiter_.reservation_of(client));
    pid_t observer = 0;
    auto status = os_.process_status(connection.peer.pid);
    for (int i = 0; i < kMostGenerations && status; ++i) {
        const auto [first, last] = clients.equal_range(status->parent);
        if (std::any_of(first, last, [&](const auto& entry) { return entry.second == asks; }))
            return static_cast<uint32_t>(status->parent);
        if (first != last) break;
        if (observer == 0 && observers.contains(status->parent)) observer = status->parent;
        status = os_.process_status(status->parent);
    }
    return static_cast<uint32_t>(observer);
}

void Server::refuse_registration(Connection& connection, Refusal refusal, const HelloRequest& request) {
    const CpuSet there = arbiter_.machine().cpus();
    switch (refusal) {
        case Refusal::kNoCpus:
            return refuse(connection, HEDDLE_REFUSED_PERMISSION,
                          fmt::format("none of the CPUs {} is among the arbiter's, {}",
                                      request.allowed.to_list(), arbiter_.cpus().to_list()));
        case Refusal::kNotThere:
            return refuse(connection, HEDDLE_REFUSED_PERMISSION,
                          fmt::format("the machine has no CPU {} to be owned; it has {}",
                                      (request.owned - there).first(), there.to_list()));
        case Refusal::kOwned:
            for (const int cpu : request.owned)
                if (const ClientId owner = arbiter_.owner_of(cpu); owner != ClientId{0})
                    return refuse(connection, HEDDLE_REFUSED_PERMISSION,
                                  fmt::format("CPU {} is owned by client {} already; name CPUs that are "
                                              "nobody's, see heddle status",
                                              cpu, owner.value));
            [[fallthrough]];
        case Refusal::kOwnsTooMany:
            return refuse(connection, HEDDLE_REFUSED_FULL,
                          "the clients of this user would own too many CPUs");
        case Refusal::kFull:
            return refuse(connection, HEDDLE_REFUSED_FULL, "there are too many clients");
        default:
            return refuse(connection, HEDDLE_REFUSED_FULL, "this user has too many clients");
    }
}

}  // namespace heddle
