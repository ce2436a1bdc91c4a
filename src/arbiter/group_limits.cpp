// What the control groups of programs allow them, by a cpuset or a quota, and that they may be in others than
// the arbiter; and what somebody outside allows them by their affinity (taskset -ap).
//
// The kernel tells of what is written there, and nobody of what is written from another container, that a
// program was moved to another group, or that it was bound. So the arbiter looks when a program comes, when a
// file was written, at one program now and then while programs compete, and more seldom at whatever else it
// is awake for. What is wanted of all threads is seen by one that the program never binds itself, its
// witness.
#include <algorithm>
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

constexpr int kLooksPerTurn = 16;  // 50 us each
constexpr Nanoseconds kLookWhileTheyCompete = std::chrono::milliseconds(20);
constexpr Nanoseconds kLookElse = std::chrono::seconds(1);

}  // namespace

void Arbiter::limit(ClientId id, const Bounds& bounds, Time now) {
    Client* const client = find(id);
    if (client == nullptr) return;
    CpuSet allowed = client->affinity;
    for (const CpuSet& bound : {bounds.cpuset, bounds.affinity}) {
        if (bound.empty()) continue;
        allowed = allowed & bound;
        // What has none of them moves the program to its own.
        if (allowed.empty()) allowed = bound & machine_.cpus();
    }
    if (allowed.empty()) return;
    if (allowed == client->allowed && bounds.quota == client->quota) return;
    account(now);
    client->allowed = std::move(allowed);
    client->quota = bounds.quota;
    client->usable = (client->allowed & cpus_).count();
    revoke(*client, client->granted - client->allowed, now);
    rebalance(now);
}

void Server::look_at_limits() {
    for (int i = 0; i < kLooksPerTurn && !limits_unknown_.empty(); ++i) {
        if (Connection* const connection = connection_of(limits_unknown_.front()); connection != nullptr)
            look_at_limits_of(*connection);
        limits_unknown_.pop_front();
    }
    const Nanoseconds rest = arbiter_.sampling() ? kLookWhileTheyCompete : kLookElse;
    if (clock_.now() - looked_at_limits_ < rest) return;
    looked_at_limits_ = clock_.now();
    if (Connection* const connection = next_in_turn(looked_at_limits_of_); connection != nullptr)
        look_at_limits_of(*connection);
}

void Server::look_at_limits_of(Connection& connection) {
    if (arbiter_.machine().synthetic()) return;
    const std::string process = std::to_string(connection.peer.pid);
    CgroupLimits limits = read_cgroup_limits(os_, process);
    if (limits.is_whole && limits.sources != connection.limit_files) {
        watch_limits(connection, limits.sources);
        limits = read_cgroup_limits(os_, process);  // somebody may have written them before
    }
    if (!limits.is_whole) return;
    look_at_witness(connection);
    arbiter_.limit(connection.client,
                   {limits.cpuset.value_or(CpuSet{}), connection.wanted_affinity,
                    static_cast<int>(std::ceil(limits.quota_cpus()))},
                   clock_.now());
}

/// While the arbiter has bound threads of the process itself their affinity tells nothing.
void Server::look_at_witness(Connection& connection) {
    if (connection.client_page() == nullptr || connection.grant_page()->fenced.load() != 0) return;
    const auto witness = static_cast<pid_t>(connection.client_page()->witness.load());
    if (witness > 0) connection.wanted_affinity = set_of(os_.thread_mask(connection.peer.pid, witness));
}

void Server::watch_limits(Connection& connection, const std::vector<std::string>& files) {
    if (limit_files_) limit_files_->change(connection.limit_files, files);
    connection.limit_files = files;
}

void Server::limits_were_written() {
    for (const std::string& file : limit_files_->written())
        for (const auto& [socket, connection] : connections_)
            if (std::ranges::find(connection->limit_files, file) != connection->limit_files.end() &&
                std::ranges::find(limits_unknown_, connection->client) == limits_unknown_.end())
                limits_unknown_.push_back(connection->client);
}

}  // namespace heddle
