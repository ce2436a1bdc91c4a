// What `heddle run --min N --own CPUS` reserves is for a job: for the program and all that this starts.
//
// These inherit the options, and each asks for the same when it registers. A shell that waits for its command
// needs none of it, the command does. So the clients of a job share one reservation, each as much of it as it
// demands; what none demands is the youngest's. A client is of the job of the nearest process around it
// that the arbiter knows, where both are the same user's and ask for the same.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "arbiter/client.hpp"
#include "base/steps.hpp"

namespace heddle {
namespace {

int sum(const std::vector<int>& counts) {
    return std::accumulate(counts.begin(), counts.end(), 0);
}

/// In proportion to the demands, as far as these go; what that leaves over to the largest remainders.
std::vector<int> by_demand(const std::vector<int>& demands, int units) {
    const long all = sum(demands);
    if (all <= units) return demands;
    std::vector<int> got;
    std::vector<std::pair<long, size_t>> by_remainder;  // the largest first: negative
    for (size_t i = 0; i < demands.size(); ++i) {
        got.push_back(static_cast<int>(long{demands[i]} * units / all));
        by_remainder.emplace_back(-(long{demands[i]} * units % all), i);
    }
    const long over = units - sum(got);
    std::ranges::nth_element(by_remainder, by_remainder.begin() + over, [](const auto& a, const auto& b) {
        HEDDLE_STEPS(1);
        return a < b;
    });
    for (long i = 0; i < over; ++i) ++got[by_remainder[static_cast<size_t>(i)].second];
    return got;
}

}  // namespace

/// One of whose job it is; also where what it became one in, by exec, is the first of the job.
const Arbiter::Client* Arbiter::kin_of(const Registration& registration, const Reservation& asks) const {
    if (asks == Reservation{}) return nullptr;
    const auto found = std::ranges::find_if(clients_, [&](const auto& c) {
        const bool is_kin = (registration.around != 0 &&
                             (c->pid == registration.around || c->around == registration.around)) ||
                            (registration.pid != 0 && c->around == registration.pid);
        return is_kin && c->user == registration.user && c->asks == asks;
    });
    return found == clients_.end() ? nullptr : found->get();
}

void Arbiter::share_reservations(Time now) {
    HEDDLE_STEPS(clients_.size());
    std::vector<Client*> reserving;
    for (const auto& c : clients_)
        if (c->asks != Reservation{})
            reserving.push_back(c.get());
        else
            c->min = 0;
    const auto job_of = [](const Client* c) {
        HEDDLE_STEPS(1);
        return c->job;
    };
    if (!std::ranges::is_sorted(reserving, {}, job_of)) std::ranges::stable_sort(reserving, {}, job_of);
    for (std::span<Client* const> rest(reserving); !rest.empty();) {
        const auto other =
            std::ranges::find_if(rest, [&](const Client* c) { return c->job != rest[0]->job; });
        const auto job = rest.first(static_cast<size_t>(other - rest.begin()));
        share_minimum(job);
        share_owned(job, now);
        rest = rest.subspan(job.size());
    }
}

/// How much of what is reserved each of the job's clients has, which are by age; none can use more than
/// `most` of it.
std::vector<int> Arbiter::parts(std::span<Client* const> job, int reserved, const std::vector<int>& most) {
    HEDDLE_STEPS(job.size());
    std::vector<int> demands;
    for (size_t i = 0; i < job.size(); ++i)
        demands.push_back(job[i]->away ? 0 : std::clamp(job[i]->demand, 0, most[i]));
    std::vector<int> got = by_demand(demands, reserved);
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
    if (job.size() == 1) {
        job[0]->min = job[0]->asks.min;
        return;
    }
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
    CpuSet reserved;
    for (const Client* c : job) reserved |= c->asks.owned;
    if (reserved.empty()) return;
    std::vector<CpuSet> owned(job.size());
    if (job.size() == 1)
        owned[0] = reserved;
    else
        owned = divide(job, reserved);
    bool changes = false;
    for (size_t i = 0; i < job.size(); ++i) changes |= owned[i] != job[i]->owned;
    if (!changes) return;
    account(now);
    for (Client* c : job) disown(*c);
    for (size_t i = 0; i < job.size(); ++i) own(*job[i], owned[i]);
}

/// Which of these CPUs each of the job's clients owns. What it is on and owns already it keeps, as far as its
/// part goes.
std::vector<CpuSet> Arbiter::divide(std::span<Client* const> job, const CpuSet& reserved) const {
    std::vector<CpuSet> usable;
    std::vector<int> usable_counts;
    for (const Client* c : job) {
        usable.push_back(reserved & c->allowed & cpus_);
        usable_counts.push_back(usable.back().count());
    }
    const std::vector<int> part = parts(job, (reserved & cpus_).count(), usable_counts);
    std::vector<size_t> order(job.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto usable_of = [&](size_t i) {
        HEDDLE_STEPS(1);
        return usable_counts[i];
    };
    if (!std::ranges::is_sorted(order, {}, usable_of)) std::ranges::stable_sort(order, {}, usable_of);
    std::vector<CpuSet> owned(job.size());
    CpuSet left = reserved;
    const auto take = [&](size_t i, const CpuSet& from) {
        int missing = part[i] - owned[i].count();
        if (missing <= 0) return;
        HEDDLE_STEPS(1);
        for (const int cpu : left& usable[i] & from) {
            if (missing-- <= 0) break;
            owned[i].insert(cpu);
        }
        left -= owned[i];
    };
    // Those with the fewest to choose from choose first.
    for (auto first = order.begin(); first != order.end();) {
        const auto last = std::find_if(first, order.end(),
                                       [&](size_t i) { return usable_counts[i] != usable_counts[*first]; });
        const std::span alike(first, last);
        CpuSet others_are_on;
        for (auto later = last; later != order.end(); ++later)
            others_are_on |= job[*later]->granted & job[*later]->owned;
        for (const size_t i : alike) take(i, job[i]->granted & job[i]->owned);
        for (const size_t i : alike) take(i, job[i]->granted);
        for (const size_t i : alike) take(i, job[i]->owned);
        for (const size_t i : alike) take(i, reserved - others_are_on);
        for (const size_t i : alike) take(i, reserved);
        first = last;
    }
    owned.back() |= left;
    return owned;
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
        if (other.get() == before || (other->job == job && other->user == user)) continue;
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
