// What the control groups of programs allow them, by a cpuset or a quota, and that they may be in others than
// the arbiter.
//
// The kernel tells nobody of what changes there. So the arbiter looks when a program comes, at one program
// now and then while programs compete, and more seldom at whatever else it is awake for.
#include <cmath>
#include <string>
#include <utility>

#include "arbiter/client.hpp"
#include "arbiter/connection.hpp"
#include "arbiter/server.hpp"
#include "base/steps.hpp"
#include "topology/cgroup.hpp"

namespace heddle {
namespace {

constexpr Nanoseconds kLookWhileTheyCompete = std::chrono::milliseconds(20);
constexpr Nanoseconds kLookElse = std::chrono::seconds(1);

}  // namespace

void Arbiter::limit(ClientId id, const CpuSet& cpuset, int quota, Time now) {
    Client* const client = find(id);
    if (client == nullptr) return;
    CpuSet allowed = cpuset.empty() ? client->affinity : client->affinity & cpuset;
    // A cpuset that has none of them moves the program to its own.
    if (allowed.empty()) allowed = cpuset & machine_.cpus();
    if (allowed == client->allowed && quota == client->quota) return;
    account(now);
    client->allowed = std::move(allowed);
    client->quota = quota;
    client->usable = (client->allowed & cpus_).count();
    revoke(*client, client->granted - client->allowed, now);
    rebalance(now);
}

void Server::look_at_limits() {
    if (arbiter_.machine().synthetic()) return newcomers_.clear();
    for (const ClientId client : std::exchange(newcomers_, {}))
        if (const Connection* const connection = connection_of(client)) look_at_limits_of(*connection);
    const Nanoseconds rest = arbiter_.sampling() ? kLookWhileTheyCompete : kLookElse;
    if (clock_.now() - looked_at_limits_ < rest) return;
    looked_at_limits_ = clock_.now();
    if (const Connection* const connection = next_in_turn(looked_at_limits_of_); connection != nullptr)
        look_at_limits_of(*connection);
}

void Server::look_at_limits_of(const Connection& connection) {
    const CgroupLimits limits = read_cgroup_limits(os_, std::to_string(connection.peer.pid));
    if (!limits.is_whole) return;
    arbiter_.limit(connection.client, limits.cpuset.value_or(CpuSet{}),
                   static_cast<int>(std::ceil(limits.quota_cpus())), clock_.now());
}

}  // namespace heddle
