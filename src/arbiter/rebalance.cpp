// How the arbiter moves CPUs: targets, then as few moves as make nobody lack what its target gives.
#include <algorithm>
#include <numeric>
#include <queue>

#include "arbiter/arbiter.hpp"
#include "arbiter/client.hpp"
#include "base/steps.hpp"

namespace heddle {
namespace {

/// Hands out `units` one by one, each to the entry that comes first by `before` and has room; returns how
/// many each got. `before(a, got_a, b, got_b)`. n log n in entries + units.
template <class Before>
std::vector<int> hand_out(size_t entries, int units, const std::vector<int>& room, Before before) {
    std::vector<int> got(entries, 0);
    const auto later = [&](size_t a, size_t b) {
        HEDDLE_STEPS(1);
        if (before(a, got[a], b, got[b])) return false;
        if (before(b, got[b], a, got[a])) return true;
        return a > b;
    };
    std::priority_queue<size_t, std::vector<size_t>, decltype(later)> queue(later);
    HEDDLE_STEPS(entries);
    for (size_t i = 0; i < entries; ++i)
        if (room[i] > 0) queue.push(i);
    for (; units > 0 && !queue.empty(); --units) {
        HEDDLE_STEPS(1);
        const size_t i = queue.top();
        queue.pop();
        if (++got[i] < room[i]) queue.push(i);
    }
    return got;
}

/// a/b > c/d for non-negative numbers, a zero denominator being infinitely much.
bool larger_quotient(long a, long b, long c, long d) {
    if (b == 0 || d == 0) return b == 0 && d != 0;
    return a * d > c * b;
}

}  // namespace

void Arbiter::rebalance(Time now) {
    share_reservations(now);
    honour_claims(now);
    compute_targets();
    take_turns(now);
    if (now >= recovering_until_ && !awaits_restored(now)) {
        enforce_maxima(now);
        grant_own(now);
        enforce_maxima(now);  // who was given its own gives up others for them
        grant_to_the_needy(now);
        take_back_owned(now);
        revoke_from_the_rich(now);
        swap_for_affinity(now);
        const CpuSet kept = make_room_in_steps(now);
        spread_the_rest(free_ - kept, now);
    }
    name_successors();
    update_contention(now);
    publish();
}

int Arbiter::most(const Client& client) const {
    int most = client.usable;
    for (const int limit : {client.max, client.quota})
        if (limit > 0) most = std::min(most, limit);
    return most;
}

int Arbiter::wanted(const Client& client) const {
    if (client.stopped) return 0;
    return std::clamp(std::max(client.demand, client.min), 0, most(client));
}

void Arbiter::enforce_maxima(Time now) {
    HEDDLE_STEPS(clients_.size());
    for (const auto& c : clients_)
        if (c->sits_out)
            revoke(*c, CpuSet(c->granted), now);  // a copy: it changes what it takes from
        else if (!c->away && c->held() > most(*c))
            revoke(*c, c->granted - keep(*c, most(*c)), now);
}

void Arbiter::compute_targets() {
    HEDDLE_STEPS(3 * clients_.size());
    std::vector<Claim> claims;
    claims.reserve(clients_.size());
    CpuSet there = cpus_;
    for (const auto& c : clients_)
        if (c->away) there -= c->granted;
    for (const auto& c : clients_) {
        if (c->away)
            c->target = c->held();
        else
            claims.push_back({c->id, wanted(*c), c->min, c->weight,
                              c->owned.empty() ? 0 : (c->owned & c->allowed & there).count(), c->held()});
    }
    // A policy may be a third party's: its mistakes must not become the arbiter's.
    std::vector<int> targets = policy_->targets(claims, there.count());
    targets.resize(claims.size(), 0);
    size_t next = 0;
    for (const auto& c : clients_) {
        if (c->away) continue;
        c->target = std::clamp(targets[next], 0, claims[next].demand);
        ++next;
    }
}

int Arbiter::lack() const {
    HEDDLE_STEPS(clients_.size());
    return std::accumulate(clients_.begin(), clients_.end(), 0,
                           [](int sum, const auto& c) { return sum + std::max(0, c->target - c->held()); });
}

/// Of these, its own first, then near ones.
CpuSet Arbiter::choose(const Client& client, const CpuSet& from, int count) const {
    CpuSet chosen = machine_.nearest(client.granted, from & client.allowed & client.owned, count);
    if (const int missing = count - chosen.count(); missing > 0)
        chosen |= machine_.nearest(client.granted | chosen, (from & client.allowed) - chosen, missing);
    return chosen;
}

void Arbiter::grant_to_the_needy(Time now) {
    if (free_.empty()) return;
    HEDDLE_STEPS(2 * clients_.size());
    std::vector<int> room;
    for (const auto& c : clients_)
        room.push_back(std::clamp(c->target - c->held(), 0, (free_ & c->allowed).count()));
    const std::vector<int> shares =
        hand_out(clients_.size(), free_.count(), room, [&](size_t a, int got_a, size_t b, int got_b) {
            return larger_quotient(clients_[a]->target, clients_[a]->held() + got_a, clients_[b]->target,
                                   clients_[b]->held() + got_b);
        });
    // Those with the fewest CPUs to choose from choose first.
    std::vector<size_t> order(clients_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t i) {
        HEDDLE_STEPS(1);
        return clients_[i]->usable;
    });
    for (const size_t i : order)
        if (shares[i] > 0) grant(*clients_[i], choose(*clients_[i], free_, shares[i]), now);
}

/// How many of its own CPUs a client has a right to beyond those of them that it holds.
int Arbiter::own_missing(const Client& client) const {
    if (client.away || client.owned.empty()) return 0;
    const int usable = (client.owned & client.allowed & cpus_).count();
    return std::min(client.target, usable) - (client.granted & client.owned).count();
}

/// What a client keeps that may have `count` of its CPUs: its own first, then the most compact part.
CpuSet Arbiter::keep(const Client& client, int count) const {
    const CpuSet own = client.granted & client.owned;
    if (own.empty() || own.count() >= count)
        return machine_.nearest({}, own.empty() ? client.granted : own, count);
    return own | machine_.nearest(own, client.granted - own, count - own.count());
}

/// What of these may be asked back of a client in others' favour: all but as many of its own as it has a
/// right to, which it would win back at once.
CpuSet Arbiter::spare(const Client& client, const CpuSet& wished) const {
    const CpuSet own = client.granted & client.owned;
    if (own.empty()) return client.granted & wished;
    const int more = own.count() - client.target;
    CpuSet given = more > 0 ? (own & wished) - keep(client, client.target) : CpuSet();
    if (given.count() < more) given |= machine_.nearest({}, (own & wished) - given, more - given.count());
    return given | ((client.granted - own) & wished);
}

/// Free CPUs go to their owners first, as far as these have a right to them. One that has enough then is the
/// first to give up others.
void Arbiter::grant_own(Time now) {
    if (!policy_->has_owners()) return;
    HEDDLE_STEPS(clients_.size());
    for (const auto& owner : clients_) {
        if (const int missing = own_missing(*owner); missing > 0)
            grant(*owner, machine_.nearest(owner->granted, free_ & owner->owned & owner->allowed, missing),
                  now);
    }
}

void Arbiter::take_back_owned(Time now) {
    if (!policy_->has_owners()) return;
    HEDDLE_STEPS(clients_.size());
    for (const auto& owner : clients_) {
        int missing = own_missing(*owner);
        if (missing <= 0) continue;
        CpuSet guests;
        for (const int cpu : owner->owned & owner->allowed & cpus_) {
            const Client* holder = find(grant_of(cpu).holder);
            if (holder == nullptr || holder == owner.get() || holder->away) continue;
            if (holder->granted.contains(cpu))
                guests.insert(cpu);
            else
                --missing;  // on its way
        }
        if (missing <= 0) continue;
        if (guests.count() > missing) guests = machine_.nearest(owner->granted, guests, missing);
        for (const int cpu : guests) {
            Client* guest = find(grant_of(cpu).holder);
            if (guest->granted.contains(cpu)) revoke(*guest, guests & guest->granted, now);
        }
    }
}

/// How many of these CPUs each may be asked for that has more than its target.
std::vector<int> Arbiter::room_of_the_rich(const CpuSet& wished) const {
    std::vector<int> room;
    for (const auto& c : clients_)
        room.push_back(std::clamp(c->held() - c->target, 0, spare(*c, wished).count()));
    return room;
}

void Arbiter::revoke_from_the_rich(Time now) {
    HEDDLE_STEPS(2 * clients_.size());
    int leaving = 0;
    CpuSet wished;
    for (const auto& c : clients_) {
        leaving += (c->leaving_cpus() & cpus_).count();
        if (c->target > c->held()) wished |= c->allowed;
    }
    int missing = lack() - leaving - (free_ & wished).count();
    if (missing <= 0) return;
    std::vector<int> room = room_of_the_rich(wished);
    if (std::accumulate(room.begin(), room.end(), 0) < missing) {
        // Others give CPUs that holders of what is wished may use instead: swap_for_affinity() does the rest.
        CpuSet instead;
        for (const auto& c : clients_)
            if (!c->away && (c->granted - c->owned).intersects(wished)) instead |= c->allowed;
        missing -= ((free_ & instead) - wished).count();
        if (missing <= 0) return;
        wished |= instead;
        room = room_of_the_rich(wished);
    }
    const std::vector<int> gives =
        hand_out(clients_.size(), missing, room, [&](size_t a, int gave_a, size_t b, int gave_b) {
            return larger_quotient(clients_[a]->held() - gave_a, clients_[a]->target,
                                   clients_[b]->held() - gave_b, clients_[b]->target);
        });
    for (size_t i = 0; i < clients_.size(); ++i) {
        if (gives[i] == 0) continue;
        Client& rich = *clients_[i];
        // Of what it does not keep, those go that somebody who lacks CPUs may use.
        const CpuSet may = spare(rich, wished);
        CpuSet given = may - keep(rich, rich.held() - gives[i]);
        if (given.count() < gives[i]) given |= machine_.nearest({}, may - given, gives[i] - given.count());
        revoke(rich, given, now);
    }
}

/// What the targets leave goes to those who want more, as where others may use so few CPUs that they cannot
/// all have what is meant for them; then to anybody.
void Arbiter::spread_the_rest(CpuSet rest, Time now) {
    for (const bool wants_more : {true, false}) {
        if (rest.empty()) return;
        HEDDLE_STEPS(2 * clients_.size());
        std::vector<int> room;
        for (const auto& c : clients_) {
            const int up_to = c->sits_out || c->away || c->stopped ? 0 : wants_more ? wanted(*c) : most(*c);
            room.push_back(std::clamp(up_to - c->held(), 0, (rest & c->allowed).count()));
        }
        const std::vector<int> shares =
            hand_out(clients_.size(), rest.count(), room, [&](size_t a, int got_a, size_t b, int got_b) {
                return larger_quotient(clients_[a]->weight, clients_[a]->held() + got_a, clients_[b]->weight,
                                       clients_[b]->held() + got_b);
            });
        for (size_t i = 0; i < clients_.size(); ++i) {
            if (shares[i] == 0) continue;
            const CpuSet chosen = choose(*clients_[i], rest, shares[i]);
            grant(*clients_[i], chosen, now);
            rest -= chosen;
        }
    }
}

void Arbiter::update_contention(Time now) {
    HEDDLE_STEPS(clients_.size());
    long peaks = 0;
    int active = 0;
    bool unmet = false;
    for (const auto& c : clients_) {
        if (now - c->peak_at > limits_.remember_peak) {
            c->peak = c->demand;
            c->peak_at = now;
        }
        peaks += std::min(std::max(c->peak, c->min), cpus_.count());
        active += c->peak > 0;
        unmet |= c->held() < wanted(*c);
    }
    const bool contended = active > 1 && (unmet || peaks > cpus_.count());
    if (contended != contended_)
        for (const auto& c : clients_) c->grant_changed = true;
    contended_ = contended;
    // A release to a successor that waits for it is told to nobody else.
    sampling_ = contended || successors_named_;
}

}  // namespace heddle
