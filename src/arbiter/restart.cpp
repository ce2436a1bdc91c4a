// The server over a restart: it saves who holds and owns what, and keeps the CPUs of those who live and have
// not come back yet.
#include <fmt/format.h>

#include <utility>

#include "arbiter/connection.hpp"
#include "arbiter/server.hpp"
#include "base/failpoint.h"

namespace heddle {

void Server::save(ClientId client, const CpuSet& cpus) {
    if (const auto place = places_.find(client); place != places_.end()) saved_.update(place->second, cpus);
}

void Server::restore_clients() {
    if (!saved_.problem().empty()) log(saved_.problem());
    // What is kept stays in the file throughout: this arbiter may die here, too.
    for (const auto& [place, saved] : saved_.left_behind())
        if (!restore_client(place, saved)) saved_.remove(place);
    apply_actions();
}

bool Server::restore_client(int place, const SavedClient& saved) {
    // The pidfd first: if the start time is right after that, it is that very process's.
    Descriptor pidfd(os_.process_pidfd(saved.pid));
    const auto process = os_.process_status(saved.pid);
    if (!pidfd.valid() || saved.started == 0 || !process || process->started != saved.started) return false;
    HEDDLE_FAILPOINT(restore_finds_a_process);
    epoll_event event{EPOLLIN, {.fd = pidfd.get()}};
    if (os_.epoll_control(epoll_.get(), EPOLL_CTL_ADD, pidfd.get(), &event) < 0) return false;
    Registration registration;
    registration.name = saved.name;
    registration.pid = static_cast<uint32_t>(saved.pid);
    registration.user = saved.user;
    registration.held = saved.cpus;
    registration.min = saved.reserves.min;
    registration.owned = saved.reserves.owned;
    registration.job = saved.job;
    const auto client = arbiter_.restore(registration, clock_.now());
    if (!client) return false;
    places_[*client] = place;
    away_by_pidfd_[pidfd.get()] = *client;
    away_[*client] = {std::move(pidfd), {saved.pid, saved.user}, saved.name};
    HEDDLE_FAILPOINT(restore_keeps_a_client);
    return true;
}

/// A process may be several clients. An owner is known by what it owns, as nobody else does; of those that
/// own nothing it is the one of this name whose CPUs it claims most of, or else the one whose name was being
/// written. It may claim none: they were lent, or all was asked back.
ClientId Server::who_returns(const Connection& connection, const HelloRequest& request) const {
    ClientId best;
    int most = 0;
    for (const auto& [client, away] : away_) {
        if (away.process.pid != connection.peer.pid || away.process.uid != connection.peer.uid) continue;
        const CpuSet owned = arbiter_.reservation_of(client).owned;
        if (!owned.empty() && owned == request.owned) return client;
        const bool named = away.name == SavedClients::saved_name(request.name);
        if (!owned.empty() || (!named && !away.name.empty())) continue;
        const int common = named ? (arbiter_.cpus_of(client) & request.held).count() : -1;
        if (best != ClientId{} && common <= most) continue;
        most = common;
        best = client;
    }
    return best;
}

void Server::forget_away(std::map<ClientId, Away>::iterator away, bool died) {
    const ClientId client = away->first;
    const pid_t process = away->second.process.pid;
    HEDDLE_FAILPOINT(server_forgets_one_away);
    closed_.push_back(away->second.pidfd.get());
    away_by_pidfd_.erase(away->second.pidfd.get());
    away_.erase(away);
    forget_fenced(client, process, true);
    if (const auto place = places_.extract(client)) saved_.remove(place.mapped());
    arbiter_.leave(client, died, clock_.now());  // where it returned it has left already
}

void Server::forget_those_away_too_long() {
    if (away_.empty() || clock_.now() - started_ < config_.away_at_most) return;
    while (!away_.empty()) {
        log(fmt::format("client {} did not come back", away_.begin()->first.value));
        forget_away(away_.begin(), false);
    }
}

}  // namespace heddle
