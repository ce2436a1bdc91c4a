// What the server does about clients that stay on CPUs that were asked back: docs/ARBITER.md, Fences.
#include <fmt/format.h>

#include <algorithm>

#include "arbiter/connection.hpp"
#include "arbiter/server.hpp"
#include "base/failpoint.h"

namespace heddle {
namespace {

constexpr Nanoseconds kFirstLook = std::chrono::milliseconds(10);
constexpr Nanoseconds kLongestRest = std::chrono::seconds(1);
constexpr int kForGood = 2;  // after so many offences the cpuset group stays
constexpr int kMostExcuses = 20;

}  // namespace

void Server::tell_what_fences() {
    const std::string missing = fence_.missing();
    if (!config_.fence_tag.empty() && !missing.empty())
        log(fmt::format("clients that stay where they should not are kept off by affinity only: {}",
                        missing));
}

void Server::apply(const Fence& fence) {
    const pid_t process = process_of(fence.client);
    if (process == 0) return;
    if (Connection* connection = connection_of(fence.client); connection != nullptr) {
        look_whether_stopped(*connection);
        read_releases(*connection, arbiter_.leaving_of(fence.client), true);
    }
    HEDDLE_FAILPOINT(fence_begins);
    // A client that lost all its CPUs has to run somewhere: it shares with whoever came.
    const CpuSet stays = cpus_of_process(process, true);
    const bool may_bind = !stays.empty() && !arbiter_.machine().synthetic();
    if (may_bind) fence_off(fence.client, process);
    const bool bound = !may_bind || os_.bind_process(process, stays.to_native()) == 0;
    log(fmt::format("client {} did not leave in time and was {}", fence.client.value,
                    bound ? "bound" : "not to be bound"));
    HEDDLE_FAILPOINT(fence_is_done);
    if (may_bind) fenced_[fence.client].bound = stays;
    arbiter_.fenced(fence.client, bound, clock_.now());
}

void Server::fence_off(ClientId client, pid_t process) {
    Fenced& fenced = fenced_[client];
    fenced.off |= arbiter_.leaving_of(client);
    fenced.obeyed = false;
    fenced.rest = kFirstLook;
    fenced.look_at = clock_.now() + fenced.rest;
    if (const Connection* connection = connection_of(client); connection != nullptr)
        fenced.binds_threads = connection->binds_threads;
    for (const auto& [thread, mask] : os_.thread_masks(process))
        if (CpuSet was = set_of(mask); was != fenced.bound) fenced.before[thread] = std::move(was);
    show_fenced(process);
}

/// To the clients that the process is.
void Server::show_fenced(pid_t process) {
    const bool is_bound =
        std::ranges::any_of(fenced_, [&](const auto& f) { return process_of(f.first) == process; });
    for (const auto& [fd, connection] : connections_)
        if (connection->peer.pid == process && connection->grant_page() != nullptr)
            // release, and before a thread is bound: who sees what it is bound to sees this.
            connection->grant_page()->fenced.store(is_bound ? 1 : 0, std::memory_order_release);
}

void Server::look_at_fenced() {
    for (auto place = fenced_.begin(); place != fenced_.end();) {
        auto& [client, fenced] = *place;
        const pid_t process = process_of(client);
        if (clock_.now() < fenced.look_at) {
            ++place;
            continue;
        }
        look_at(client, fenced);
        const bool over = fenced.off.empty() || (fenced.obeyed && fenced.rest >= kLongestRest);
        if (!over || fence_.holds(process) || !undo_binding(process, fenced)) {
            ++place;
            continue;
        }
        place = fenced_.erase(place);
        show_fenced(process);
    }
}

/// Threads that are as the fence has bound them follow the grant: the client does not yet.
void Server::move_bound(pid_t process, Fenced& fenced, const CpuSet& to) {
    if (fenced.bound.empty() || to.empty() || to == fenced.bound) return;
    for (const auto& [thread, mask] : os_.thread_masks(process))
        if (set_of(mask) == fenced.bound) (void)os_.bind_thread(thread, to.to_native());
    fenced.bound = to;
}

/// Who binds threads one by one may not think of the others: each is as before where it has a CPU there
/// again, or where its process has none and wants none. One that began meanwhile is as the first one was.
bool Server::undo_binding(pid_t process, Fenced& fenced) {
    if (fenced.bound.empty()) return true;
    const CpuSet stays = cpus_of_process(process, true);
    if (!fenced.binds_threads) {
        move_bound(process, fenced, stays);
        free_witness(process, fenced);
        return true;
    }
    const bool anywhere = stays.empty() && wants_none(process);
    fenced.off = {};  // from here on a thread may be where it was
    bool all = true;
    for (const auto& [thread, mask] : os_.thread_masks(process)) {
        if (set_of(mask) != fenced.bound) continue;
        auto before = fenced.before.find(thread);
        if (before == fenced.before.end()) before = fenced.before.find(process);
        if (before == fenced.before.end()) continue;
        if (anywhere || before->second.intersects(stays))
            (void)os_.bind_thread(thread, before->second.to_native());
        else
            all = false;
    }
    return all;
}

/// The client binds its threads itself from now on, and never that one.
void Server::free_witness(pid_t process, const Fenced& fenced) {
    for (const auto& [fd, connection] : connections_) {
        if (connection->peer.pid != process || connection->client_page() == nullptr) continue;
        const auto before = fenced.before.find(static_cast<pid_t>(connection->client_page()->witness.load()));
        if (before != fenced.before.end()) (void)os_.bind_thread(before->first, before->second.to_native());
    }
}

/// As the clients that it is show it.
bool Server::wants_none(pid_t process) const {
    return std::ranges::none_of(connections_, [&](const auto& entry) {
        const Connection& connection = *entry.second;
        return connection.peer.pid == process && connection.client_page() != nullptr &&
               connection.client_page()->demand.load(std::memory_order_relaxed) != 0;
    });
}

/// A thread that starts a program has to be where that may run, for a moment or, as in system(3), asleep for
/// long. One that says so and computes is believed a few times.
bool Server::has_undone(ClientId client, Fenced& fenced, const CpuSet& off) {
    const Connection* const connection = connection_of(client);
    const bool starts_program = connection != nullptr && connection->client_page() != nullptr &&
                                connection->client_page()->widened.load(std::memory_order_relaxed) != 0;
    if (os_.process_may_use(process_of(client), off.to_native(), starts_program) != 1) {
        if (!starts_program) fenced.excuses = 0;
        return false;
    }
    if (!starts_program || ++fenced.excuses > kMostExcuses) return true;
    fenced.look_at = clock_.now() + kFirstLook;
    return false;
}

/// Its threads were bound. Where one may run on a CPU that they were kept from, somebody has undone that.
void Server::look_at(ClientId client, Fenced& fenced) {
    const pid_t process = process_of(client);
    const CpuSet stays = cpus_of_process(process, true);
    fenced.off -= stays;
    fenced.rest = std::min(2 * fenced.rest, kLongestRest);
    fenced.look_at = clock_.now() + fenced.rest;
    const CpuSet off = fenced.off - cpus_of_process(process, false);
    if (stays.empty() || off.empty() || !has_undone(client, fenced, off)) return;
    fenced.excuses = 0;
    ++fenced.offences;
    // Who is held has left its group, if that could be.
    const std::string problem =
        fence_.holds(process) ? fence_.hold_again(process) : fence_.hold(process, stays);
    if (!problem.empty()) {
        (void)os_.bind_process(process, stays.to_native());
        fenced.bound = stays;
    }
    log(fmt::format("client {} undid its binding and is {}{}", client.value,
                    problem.empty() ? "held by a cpuset group" : "bound again: ", problem));
}

void Server::end_fence_of_one_that_obeys(ClientId client, uint32_t epoch) {
    const auto place = fenced_.find(client);
    if (place == fenced_.end()) return;
    const uint32_t shown = connection_of(client)->grant_page()->epoch.load(std::memory_order_relaxed);
    if (static_cast<int32_t>(epoch - shown) < 0) return;
    Fenced& fenced = place->second;
    fenced.obeyed = true;
    const pid_t process = process_of(client);
    if (!fence_.holds(process) || fenced.offences >= kForGood) return;
    fence_.let_go(process);
    log(fmt::format("client {} obeys and is no longer held", client.value));
    fenced.rest = kFirstLook;
    fenced.look_at = clock_.now() + fenced.rest;
}

/// It is none of the process's clients any more.
void Server::forget_fenced(ClientId client, pid_t process, bool died) {
    if (const auto place = fenced_.find(client); place != fenced_.end()) {
        if (!died && place->second.binds_threads) (void)undo_binding(process, place->second);
        fenced_.erase(place);
        show_fenced(process);
    }
    // The process may be other clients, too.
    const bool held =
        std::ranges::any_of(fenced_, [&](const auto& f) { return process_of(f.first) == process; });
    if (!held) fence_.let_go(process);
}

/// Who is held or bound stays within its grant, whatever becomes of that; without one it stays where it was
/// last.
void Server::fit_fence(ClientId client) {
    if (fenced_.empty()) return;
    const pid_t process = process_of(client);
    const auto place = fenced_.find(client);
    const bool is_bound = place != fenced_.end() && !place->second.obeyed;
    const bool is_held = fence_.holds(process);
    if (!is_held && !is_bound) return;
    const CpuSet stays = cpus_of_process(process, true);
    if (stays.empty()) return;
    if (!is_held) return move_bound(process, place->second, stays);
    if (const std::string problem = fence_.hold(process, stays); !problem.empty()) log(problem);
}

pid_t Server::process_of(ClientId client) const {
    if (const Connection* connection = connection_of(client); connection != nullptr)
        return connection->peer.pid;
    const auto away = away_.find(client);
    return away == away_.end() ? 0 : away->second.process.pid;
}

CpuSet Server::cpus_of_process(pid_t process, bool stays) const {
    CpuSet cpus;
    const auto add = [&](ClientId client) {
        cpus |= stays ? arbiter_.cpus_of(client) - arbiter_.leaving_of(client) : arbiter_.cpus_of(client);
    };
    for (const auto& [fd, connection] : connections_)
        if (connection->peer.pid == process && connection->client != ClientId{}) add(connection->client);
    for (const auto& [client, away] : away_)
        if (away.process.pid == process) add(client);
    return cpus;
}

}  // namespace heddle
