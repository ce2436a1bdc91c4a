// How the arbiter lets CPUs move without it: whom it names in advance, and what it makes of a release.
#include <algorithm>
#include <deque>
#include <unordered_map>

#include "arbiter/arbiter.hpp"
#include "arbiter/client.hpp"
#include "base/steps.hpp"

namespace heddle {
namespace {

/// How many candidates are asked for one CPU before it goes without a successor: a bound on the work where
/// affinities exclude many.
constexpr size_t kTries = 4;

}  // namespace

void Arbiter::released(ClientId id, const std::vector<Release>& releases, int demand, Time now,
                       bool join_follows) {
    Client* from = find(id);
    if (from == nullptr) return;
    bool moved = false;
    for (const Release& release : releases) {
        const CpuGrant& grant_now = grant_of(release.cpu);
        if (grant_now.holder != id || grant_now.generation != release.generation) continue;
        if (release.to != ClientId{0} &&
            std::ranges::find(grant_now.successors, release.to) == grant_now.successors.end())
            continue;
        vacate(*from, {release.cpu}, now);
        // A successor that died took nothing with it, and a CPU that there is no more goes to nobody.
        Client* to = find(release.to);
        if (to != nullptr && cpus_.contains(release.cpu)) {
            grant(*to, {release.cpu}, now);
            // It may have been bound to others since it was named.
            if (!to->allowed.contains(release.cpu)) revoke(*to, {release.cpu}, now);
        }
        moved = true;
    }
    if (!moved) return;
    note_demand(*from, demand, now);
    if (!join_follows) rebalance(now);
}

void Arbiter::end_grant(int cpu) {
    CpuGrant& ended = grants_[static_cast<size_t>(cpu)];
    for (const ClientId successor : ended.successors) ended_.push_back({successor, cpu, 0, ClientId{0}});
    ended.successors.clear();
    ended.holder = ended.successor = ClientId{0};
}

void Arbiter::name_successor(int cpu, Client* successor) {
    CpuGrant& grant_now = grants_[static_cast<size_t>(cpu)];
    const ClientId id = successor == nullptr ? ClientId{0} : successor->id;
    if (grant_now.successor == id) return;
    grant_now.successor = id;
    if (successor != nullptr && std::ranges::find(grant_now.successors, id) == grant_now.successors.end()) {
        grant_now.successors.push_back(id);
        actions_.emplace_back(NameLender{id, cpu, grant_now.generation, grant_now.holder});
        successor->grant_changed = true;
    }
    actions_.emplace_back(NameSuccessor{grant_now.holder, cpu, grant_now.generation, id});
}

/// Whoever wants more CPUs than it holds is named for CPUs of others of its user, those with the largest
/// quotient of demand to CPUs held first, in turn. Who is named already stays. CPUs that were asked back go
/// to those that are below their targets alone: else two could pass them to each other, and not to whom they
/// were asked back for.
void Arbiter::name_successors() {
    HEDDLE_STEPS(2 * clients_.size());
    std::vector<Client*> candidates;
    for (const auto& c : clients_) {
        c->room = c->room_for_leaving = 0;
        if (!c->hands_over || c->sits_out || c->held() >= wanted(*c)) continue;
        c->room = most(*c) - c->held();
        c->room_for_leaving = std::clamp(c->target - c->held(), 0, c->room);
        candidates.push_back(c.get());
    }
    if (candidates.empty() && !successors_named_) return;
    successors_named_ = !candidates.empty();
    std::ranges::stable_sort(candidates, [this](const Client* a, const Client* b) {
        HEDDLE_STEPS(1);
        return long{wanted(*a)} * b->held() > long{wanted(*b)} * a->held();
    });
    const auto may_have = [](const Client& client, bool leaves) {
        return client.room > 0 && (!leaves || client.room_for_leaving > 0);
    };
    const auto take = [](Client& client, bool leaves) {
        --client.room;
        if (leaves) --client.room_for_leaving;
    };
    std::unordered_map<UserId, std::deque<Client*>> waiting;

    std::vector<std::pair<Client*, int>> open;  // CPUs without a successor, and their holders
    for (const auto& holder : clients_) {
        if (!holder->hands_over) continue;
        for (const int cpu : holder->granted | holder->leaving_cpus()) {
            Client* named = find(grant_of(cpu).successor);
            const bool leaves = !holder->granted.contains(cpu);
            if (named != nullptr && may_have(*named, leaves))
                take(*named, leaves);
            else
                open.emplace_back(holder.get(), cpu);
        }
    }
    for (Client* candidate : candidates)
        if (candidate->room > 0) waiting[candidate->user].push_back(candidate);
    for (const auto& [holder, cpu] : open) {
        HEDDLE_STEPS(1);
        std::deque<Client*>& queue = waiting[holder->user];
        const CpuGrant& grant_now = grant_of(cpu);
        const bool leaves = !holder->granted.contains(cpu);
        Client* successor = nullptr;
        for (size_t k = 0, tries = std::min(kTries, queue.size()); k < tries && successor == nullptr; ++k) {
            HEDDLE_STEPS(1);
            Client* candidate = queue.front();
            queue.pop_front();
            const bool honoured =
                std::ranges::find(grant_now.successors, candidate->id) != grant_now.successors.end();
            if (candidate != holder && may_have(*candidate, leaves) && candidate->allowed.contains(cpu) &&
                cpus_.contains(cpu) && (honoured || grant_now.successors.size() < CpuGrant::kMostSuccessors))
                successor = candidate;
            if (successor != nullptr) take(*successor, leaves);
            if (candidate->room > 0) queue.push_back(candidate);
        }
        name_successor(cpu, successor);
    }
}

}  // namespace heddle
