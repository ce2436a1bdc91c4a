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
    if (Connection* connection = connection_of(fence.client); connection != nullptr)
        read_releases(*connection, arbiter_.leaving_of(fence.client), true);
    HEDDLE_FAILPOINT(fence_begins);
    // A client that lost all its CPUs has to run somewhere: it shares with whoever came.
    const bool may_bind = !fence.cpus.empty() && !arbiter_.machine().synthetic();
    const bool bound = !may_bind || os_.bind_process(process, fence.cpus.to_native()) == 0;
    log(fmt::format("client {} did not leave in time and was {}", fence.client.value,
                    bound ? "bound" : "not to be bound"));
    HEDDLE_FAILPOINT(fence_is_done);
    if (may_bind) fence_off(fence.client, arbiter_.leaving_of(fence.client));
    arbiter_.fenced(fence.client, bound, clock_.now());
}

void Server::fence_off(ClientId client, const CpuSet& off) {
    Fenced& fenced = fenced_[client];
    fenced.off |= off;
    fenced.obeyed = false;
    fenced.rest = kFirstLook;
    fenced.look_at = clock_.now() + fenced.rest;
}

void Server::look_at_fenced() {
    for (auto place = fenced_.begin(); place != fenced_.end();) {
        auto& [client, fenced] = *place;
        const pid_t process = process_of(client);
        if (clock_.now() >= fenced.look_at && !fence_.holds(process)) look_at(client, fenced);
        const bool over = fenced.off.empty() || (fenced.obeyed && fenced.rest >= kLongestRest);
        place = over && !fence_.holds(process) ? fenced_.erase(place) : std::next(place);
    }
}

/// Its threads were bound. Where one may run on a CPU that they were kept from, somebody has undone that.
void Server::look_at(ClientId client, Fenced& fenced) {
    const pid_t process = process_of(client);
    const CpuSet stays = cpus_of_process(process, true);
    fenced.off -= stays;
    fenced.rest = std::min(2 * fenced.rest, kLongestRest);
    fenced.look_at = clock_.now() + fenced.rest;
    const CpuSet off = fenced.off - cpus_of_process(process, false);
    if (stays.empty() || off.empty() || os_.process_may_use(process, off.to_native()) != 1) return;
    ++fenced.offences;
    const std::string problem = fence_.hold(process, stays);
    if (!problem.empty()) (void)os_.bind_process(process, stays.to_native());
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

void Server::forget_fenced(ClientId client, pid_t process) {
    fenced_.erase(client);
    // The process may be other clients, too.
    const bool held =
        std::ranges::any_of(fenced_, [&](const auto& f) { return process_of(f.first) == process; });
    if (!held) fence_.let_go(process);
}

/// Who is held stays within its grant, whatever becomes of that; without one it stays where it was last.
void Server::fit_fence(ClientId client) {
    if (fenced_.empty()) return;
    const pid_t process = process_of(client);
    if (!fence_.holds(process)) return;
    const CpuSet stays = cpus_of_process(process, true);
    if (stays.empty()) return;
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
