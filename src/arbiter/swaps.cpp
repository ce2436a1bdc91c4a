// Swaps: how a free CPU helps a client that may not use it. Its holder-to-be gives one that it holds in
// return.
#include <algorithm>

#include "arbiter/arbiter.hpp"
#include "arbiter/client.hpp"
#include "base/steps.hpp"

namespace heddle {

/// A client that may use none of the free CPUs gets one of a holder that may: the holder takes a free one in
/// its place. Owners keep their own.
void Arbiter::swap_for_affinity(Time now) {
    if (free_.empty() || lack() == 0) return;
    HEDDLE_STEPS(2 * clients_.size());
    CpuSet offered;  // CPUs whose holders may use a free one instead
    for (const auto& holder : clients_)
        if (!holder->away && free_.intersects(holder->allowed)) offered |= holder->granted - holder->owned;
    for (const auto& needy : clients_) {
        int missing = needy->target - needy->held() - needy->leaving_cpus().count();
        while (missing > 0 && !free_.empty()) {
            const CpuSet wished = (offered & needy->allowed) - needy->granted;
            if (wished.empty()) break;
            Client& holder = *find(grant_of(wished.first()).holder);
            const CpuSet instead = free_ & holder.allowed;
            const CpuSet of_holder = wished & holder.granted;
            const int count = std::min({missing, instead.count(), of_holder.count()});
            if (count == 0) {  // others took the free CPUs that it may use
                offered -= holder.granted;
                continue;
            }
            const CpuSet given = machine_.nearest(needy->granted, of_holder, count);
            offered -= given;
            revoke(holder, given, now);
            grant(holder, machine_.nearest(holder.granted, instead, count), now);
            missing -= count;
        }
    }
}

/// Where one such swap does not do, but several in a row: the first of the shortest row. Who can take a free
/// CPU gives for it one of its own; the others follow, each when the one before has been left. Returns the
/// CPUs that such rows lead through: of these the free ones are kept for those who lack some.
CpuSet Arbiter::make_room_in_steps(Time now) {
    if (free_.empty()) return {};
    HEDDLE_STEPS(clients_.size());
    CpuSet reached;
    bool under_way = false;
    for (const auto& c : clients_) {
        under_way |= !c->leaving.empty();
        if (c->target > c->held()) reached |= c->allowed & cpus_;
    }
    std::vector<int> gives(
        grants_.size());  // by CPU that is reached by swaps: what who takes it gives for it
    int start = -1;
    for (CpuSet last = reached; !last.empty();) {
        HEDDLE_STEPS(2 * clients_.size());
        CpuSet next;
        const auto exchange = [&](const CpuSet& given, const CpuSet& takes) {
            if (given.empty()) return;
            for (const int cpu : (takes & cpus_) - reached) {
                gives[static_cast<size_t>(cpu)] = given.first();
                reached.insert(cpu);
                next.insert(cpu);
            }
        };
        for (const auto& holder : clients_) {
            if (holder->away) continue;
            const CpuSet wished = holder->granted & last;
            exchange(wished - holder->owned, holder->allowed);
            exchange(wished & holder->owned, holder->allowed & holder->owned);
        }
        if (start < 0) start = (next & free_).first();
        last = std::move(next);
    }
    if (start >= 0 && !under_way) {
        const int given = gives[static_cast<size_t>(start)];
        Client& taker = *find(holder(given));
        revoke(taker, {given}, now);
        grant(taker, {start}, now);
    }
    return reached;
}

}  // namespace heddle
