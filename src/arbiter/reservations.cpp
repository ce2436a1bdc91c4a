// What `heddle run --min N --own CPUS` reserves is for a job: for the program and all that this starts.
//
// These inherit the options, and each asks for the same when it registers. A shell that waits for its command
// needs none of it, the command does. So the clients of a job share one reservation, each as much of it as it
// demands; what none demands is the youngest's. A client is of the job of its nearest ancestor that is a
// client, where both are the same user's and ask for the same.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "arbiter/client.hpp"
#include "arbiter/hand_out.hpp"
#include "base/steps.hpp"

namespace heddle {
namespace {

int sum(const std::vector<int>& counts) {
    return std::accumulate(counts.begin(), counts.end(), 0);
}

}  // namespace

JobId Arbiter::job_of(const Registration& registration, const Reservation& asks, const Client* before) {
    if (before != nullptr) return before->job;
    const auto kin = std::ranges::find_if(clients_, [&](const auto& c) {
        return registration.ancestor != 0 && c->pid == registration.ancestor &&
               c->user == registration.user && c->asks == asks && asks != Reservation{};
    });
    return kin == clients_.end() ? JobId{++last_job_} : (*kin)->job;
}

void Arbiter::share_reservations(Time now) {
    HEDDLE_STEPS(clients_.size());
    std::vector<Client*> sharing;
    for (const auto& c : clients_)
        if (c->asks != Reservation{})
            sharing.push_back(c.get());
        else
            c->min = 0;
    std::ranges::stable_sort(sharing, {}, [](const Client* c) {
        HEDDLE_STEPS(1);
        return c->job;
    });
    for (std::span<Client* const> rest(sharing); !rest.empty();) {
        const auto others =
            std::ranges::find_if(rest, [&](const Client* c) { return c->job != rest[0]->job; });
        const auto size = static_cast<size_t>(others - rest.begin());
        share_minimum(rest.first(size));
        share_owned(rest.first(size), now);
        rest = rest.subspan(size);
    }
}

/// How much of what is reserved each of the job's clients has, which are by age; none can use more than
/// `most` of it.
std::vector<int> Arbiter::parts(std::span<Client* const> job, int reserved, const std::vector<int>& most) {
    std::vector<int> room;
    for (size_t i = 0; i < job.size(); ++i)
        room.push_back(job[i]->away ? 0 : std::clamp(job[i]->demand, 0, most[i]));
    std::vector<int> got =
        hand_out(job.size(), reserved, room, [&](size_t a, int got_a, size_t b, int got_b) {
            return larger_quotient(room[a], got_a, room[b], got_b);
        });
    int left = reserved - sum(got);
    for (size_t i = job.size(); i-- > 0 && left > 0;) {
        const int more = job[i]->away ? 0 : std::clamp(most[i] - got[i], 0, left);
        got[i] += more;
        left -= more;
    }
    got.back() += left;
    return got;
}

void Arbiter::share_minimum(std::span<Client* const> job) {
    HEDDLE_STEPS(job.size());
    int reserved = 0;
    std::vector<int> mosts;
    for (const Client* c : job) {
        reserved = std::max(reserved, c->asks.min);
        mosts.push_back(most(*c));
    }
    const std::vector<int> part = parts(job, reserved, mosts);
    for (size_t i = 0; i < job.size(); ++i) job[i]->min = part[i];
}

void Arbiter::share_owned(std::span<Client* const> job, Time now) {
    HEDDLE_STEPS(job.size());
    CpuSet left;
    std::vector<int> usable;
    for (const Client* c : job) {
        left |= c->asks.owned;
        usable.push_back((c->asks.owned & c->allowed & cpus_).count());
    }
    if (left.empty()) return;
    const std::vector<int> part = parts(job, left.count(), usable);
    std::vector<CpuSet> owned(job.size());
    const auto take = [&](size_t i, const CpuSet& from) {
        const CpuSet more = machine_.nearest(owned[i], left & from, part[i] - owned[i].count());
        owned[i] |= more;
        left -= more;
    };
    for (size_t i = 0; i < job.size(); ++i) take(i, job[i]->granted);  // who is on one keeps it
    for (size_t i = 0; i < job.size(); ++i) take(i, job[i]->allowed);
    owned.back() |= left;
    bool changes = false;
    for (size_t i = 0; i < job.size(); ++i) changes |= owned[i] != job[i]->owned;
    if (!changes) return;
    account(now);
    for (Client* c : job) disown(*c);
    for (size_t i = 0; i < job.size(); ++i) own(*job[i], owned[i]);
}

void Arbiter::own(Client& client, const CpuSet& cpus) {
    client.owned = cpus;
    for (const int cpu : cpus) {
        owners_[static_cast<size_t>(cpu)] = client.id;
        count_lent(cpu, holder(cpu), 1);
    }
}

void Arbiter::disown(Client& client) {
    for (const int cpu : client.owned) {
        count_lent(cpu, holder(cpu), -1);
        owners_[static_cast<size_t>(cpu)] = ClientId{0};
    }
    client.owned = {};
}

Refusal Arbiter::refusal_of_owned(const CpuSet& owned, UserId user, JobId job, const Client* before) const {
    if (owned.empty()) return Refusal::kNone;
    CpuSet taken;
    long of_user = owned.count();
    for (const auto& other : clients_) {
        if (other.get() == before || other->job == job) continue;
        taken |= other->owned;
        if (other->user == user) of_user += other->owned.count();
    }
    if (owned.intersects(taken)) return Refusal::kOwned;
    return of_user > limits_.owned_per_user ? Refusal::kOwnsTooMany : Refusal::kNone;
}

Reservation Arbiter::reservation_of(ClientId id) const {
    const Client* client = find(id);
    return client == nullptr ? Reservation{} : client->asks;
}

JobId Arbiter::job_of(ClientId id) const {
    const Client* client = find(id);
    return client == nullptr ? JobId{} : client->job;
}

std::string Arbiter::check_jobs() const {
    std::map<JobId, Reservation> shared;
    std::map<JobId, Reservation> asked;
    for (const auto& c : clients_) {
        shared[c->job].min += c->min;
        shared[c->job].owned |= c->owned;
        asked[c->job].min = std::max(asked[c->job].min, c->asks.min);
        asked[c->job].owned |= c->asks.owned;
    }
    for (const auto& [job, reservation] : asked)
        if (shared[job] != reservation) return fmt::format("job {} has not what it reserved", job.value);
    return "";
}

}  // namespace heddle
