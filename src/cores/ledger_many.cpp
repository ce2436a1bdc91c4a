// The Ledger's calls on many CPUs: which of them, in which order, and what the whole comes to.
#include <algorithm>

#include "cores/ledger.hpp"

namespace heddle {
namespace {

/// What a call on many CPUs answers: the most telling of what came of each.
Outcome combine(Outcome a, Outcome b) {
    const auto weight = [](Outcome outcome) {
        switch (outcome) {
            case Outcome::kTooManyRequests:
                return 3;
            case Outcome::kNoted:
                return 2;
            case Outcome::kSuccess:
                return 1;
            default:
                return 0;
        }
    };
    return weight(a) >= weight(b) ? a : b;
}

}  // namespace

template <class Predicate>
CpuSet Ledger::cpus_where(Predicate predicate) const {
    CpuSet set;
    for (int cpu = static_cast<int>(cpus_.size()) - 1; cpu >= 0; --cpu)
        if (predicate(at(cpu))) set.insert(cpu);
    return set;
}

CpuSet Ledger::choose(const Member& member, const CpuSet& from, int count) const {
    if (count <= 0) return {};
    if (from.count() <= count) return from;
    CpuSet anchor = usable(member.id);
    if (anchor.empty()) anchor = owned(member.id);
    return machine_.nearest(anchor, from, count);
}

Outcome Ledger::lend(MemberId id, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled) return Outcome::kDisabled;
    drop_requests(*member);
    for (const int cpu : machine_.cpus())
        if (at(cpu).owner == id || at(cpu).guest == id) lend_one(*member, cpu, actions);
    return Outcome::kSuccess;
}

Outcome Ledger::lend_cpus(MemberId id, int count, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled) return Outcome::kDisabled;
    if (count < 0) return Outcome::kPermission;
    lend_excess(*member, std::max(0, member->usable - count), actions);
    return Outcome::kSuccess;
}

Outcome Ledger::lend_cpu_mask(MemberId id, const CpuSet& cpus, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled) return Outcome::kDisabled;
    if (!machine_.cpus().contains(cpus)) return Outcome::kPermission;
    for (const int cpu : cpus) lend_one(*member, cpu, actions);
    return Outcome::kSuccess;
}

/// Lends until the member may use only `keep` CPUs: its own are kept first, then the nearest ones.
void Ledger::lend_excess(Member& member, int keep, Actions& actions) {
    if (member.usable <= keep) return;
    const MemberId id = member.id;
    const CpuSet mine =
        cpus_where([id](const Cpu& c) { return c.owner == id && c.state == CpuState::kBusy && c.here; });
    const CpuSet borrowed = usable(id) - mine;
    const CpuSet kept_mine = mine.count() <= keep ? mine : machine_.nearest({}, mine, keep);
    const int rest = keep - kept_mine.count();
    const CpuSet kept_borrowed =
        borrowed.count() <= rest ? borrowed : machine_.nearest(owned(id), borrowed, rest);
    for (const int cpu : borrowed - kept_borrowed) lend_one(member, cpu, actions);
    for (const int cpu : mine - kept_mine) lend_one(member, cpu, actions);
}

Outcome Ledger::reclaim(MemberId id, Actions& actions) {
    return reclaim_cpus(id, INT32_MAX, actions);
}

Outcome Ledger::reclaim_cpus(MemberId id, int count, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled) return Outcome::kDisabled;
    if (count < 0) return Outcome::kPermission;
    const Outcome outcome = take_own(*member, machine_.cpus(), count, actions);
    return combine(outcome, miss_own(*member, machine_.cpus(), count, actions));
}

Outcome Ledger::reclaim_cpu_mask(MemberId id, const CpuSet& cpus, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled) return Outcome::kDisabled;
    if (!owned(id).contains(cpus)) return Outcome::kPermission;
    Outcome outcome = Outcome::kNoUpdate;
    for (const int cpu : cpus) outcome = combine(outcome, reclaim_one(*member, cpu, actions));
    return outcome;
}

/// Takes back up to `count` of the member's lent CPUs, idle ones first, and counts them down.
Outcome Ledger::take_own(Member& member, const CpuSet& from, int& count, Actions& actions) {
    Outcome outcome = Outcome::kNoUpdate;
    const MemberId id = member.id;
    for (const bool idle : {true, false}) {
        const CpuSet lent = cpus_where([id, idle](const Cpu& c) {
            return c.owner == id && c.state == CpuState::kLent && c.here && (c.guest == kNobody) == idle;
        });
        const CpuSet chosen = choose(member, lent & from, std::min(count, room(member)));
        for (const int cpu : chosen) outcome = combine(outcome, reclaim_one(member, cpu, actions));
        count -= chosen.count();
    }
    return outcome;
}

/// Wants up to `count` of the member's lent CPUs back that are away, and counts them down.
Outcome Ledger::miss_own(Member& member, const CpuSet& from, int& count, Actions& actions) {
    if (!shared_) return Outcome::kNoUpdate;
    const MemberId id = member.id;
    const CpuSet lent =
        cpus_where([id](const Cpu& c) { return c.owner == id && c.state == CpuState::kLent && !c.here; });
    Outcome outcome = Outcome::kNoUpdate;
    const CpuSet chosen = choose(member, lent & from, std::min(count, room(member)));
    for (const int cpu : chosen) outcome = combine(outcome, reclaim_one(member, cpu, actions));
    count -= chosen.count();
    return outcome;
}

/// Takes up to `count` free CPUs, the member's own first, then near ones, and counts them down.
Outcome Ledger::take_free(Member& member, const CpuSet& from, int& count, Actions& actions) {
    if (free_count_ == 0) return Outcome::kNoUpdate;
    const CpuSet free = free_cpus() & from;
    const CpuSet mine = free & owned(member.id);
    Outcome outcome = Outcome::kNoUpdate;
    for (const CpuSet& part : {mine, free - mine}) {
        const CpuSet chosen = choose(member, part, std::min(count, room(member)));
        for (const int cpu : chosen) outcome = combine(outcome, borrow_one(member, cpu, actions));
        count -= chosen.count();
    }
    return outcome;
}

Outcome Ledger::acquire(MemberId id, Actions& actions) {
    return acquire_cpus(id, INT32_MAX, actions);
}

Outcome Ledger::acquire_cpus(MemberId id, int count, Actions& actions) {
    return acquire_cpus_in(id, count, machine_.cpus(), actions);
}

Outcome Ledger::acquire_cpus_in(MemberId id, int count, const CpuSet& allowed, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled) return Outcome::kDisabled;
    if (count < 0 || !machine_.cpus().contains(allowed)) return Outcome::kPermission;
    if (count == 0) {
        drop_requests(*member);
        return Outcome::kSuccess;
    }
    int wanted = std::min({count, room(*member), (allowed - usable(id)).count()});
    Outcome outcome = take_own(*member, allowed, wanted, actions);
    outcome = combine(outcome, take_free(*member, allowed, wanted, actions));
    outcome = combine(outcome, miss_own(*member, allowed, wanted, actions));
    return wanted > 0 ? combine(outcome, petition(*member, wanted, allowed)) : outcome;
}

Outcome Ledger::acquire_cpu_mask(MemberId id, const CpuSet& cpus, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled) return Outcome::kDisabled;
    if (!machine_.cpus().contains(cpus)) return Outcome::kPermission;
    // What is to be had now comes first, so that a maximum is not spent on waiting.
    int count = INT32_MAX;
    Outcome outcome = take_own(*member, cpus, count, actions);
    outcome = combine(outcome, take_free(*member, cpus, count, actions));
    outcome = combine(outcome, miss_own(*member, cpus, count, actions));
    for (const int cpu : cpus)
        if (at(cpu).owner != id) outcome = combine(outcome, queue_one(*member, cpu));
    return outcome;
}

Outcome Ledger::petition(Member& member, int count, const CpuSet& allowed) {
    for (Petition& petition : petitions_) {
        if (petition.member != member.id || petition.allowed != allowed) continue;
        petitioned_ -= petition.wanted;
        petition.wanted = std::min(petition.wanted + count, allowed.count());
        petitioned_ += petition.wanted;
        return Outcome::kNoted;
    }
    if (petitions_.size() == static_cast<size_t>(limits_.petitions)) return Outcome::kTooManyRequests;
    petitions_.push_back({member.id, count, allowed});
    petitioned_ += count;
    ++member.petitions;
    return Outcome::kNoted;
}

Outcome Ledger::borrow(MemberId id, Actions& actions) {
    return borrow_cpus(id, INT32_MAX, actions);
}

Outcome Ledger::borrow_cpus(MemberId id, int count, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled) return Outcome::kDisabled;
    if (count < 0) return Outcome::kPermission;
    return take_free(*member, machine_.cpus(), count, actions);
}

Outcome Ledger::borrow_cpu_mask(MemberId id, const CpuSet& cpus, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled) return Outcome::kDisabled;
    if (!machine_.cpus().contains(cpus)) return Outcome::kPermission;
    int count = INT32_MAX;
    return take_free(*member, cpus, count, actions);
}

Outcome Ledger::return_all(MemberId id, Actions& actions) {
    return return_cpus(id, INT32_MAX, actions);
}

Outcome Ledger::return_cpus(MemberId id, int count, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled && !returns_disabled(id, machine_.cpus())) return Outcome::kDisabled;
    if (count < 0) return Outcome::kPermission;
    Outcome outcome = Outcome::kNoUpdate;
    for (const int cpu : to_return(id)) {
        if (count-- == 0) break;
        outcome = combine(outcome, return_one(*member, cpu, actions));
    }
    return outcome;
}

Outcome Ledger::return_cpu_mask(MemberId id, const CpuSet& cpus, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled && !returns_disabled(id, cpus)) return Outcome::kDisabled;
    if (!machine_.cpus().contains(cpus)) return Outcome::kPermission;
    Outcome outcome = Outcome::kNoUpdate;
    for (const int cpu : to_return(id) & cpus) outcome = combine(outcome, return_one(*member, cpu, actions));
    return outcome;
}

CpuSet Ledger::usable(MemberId id) const {
    if (find(id) == nullptr) return {};
    return cpus_where([id](const Cpu& c) { return user_of(c) == id; });
}

CpuSet Ledger::owned(MemberId id) const {
    if (find(id) == nullptr) return {};
    return cpus_where([id](const Cpu& c) { return c.owner == id; });
}

CpuSet Ledger::lent(MemberId id) const {
    if (find(id) == nullptr) return {};
    return cpus_where([id](const Cpu& c) { return c.owner == id && c.state == CpuState::kLent; });
}

CpuSet Ledger::to_return(MemberId id) const {
    if (find(id) == nullptr) return {};
    return cpus_where(
        [id](const Cpu& c) { return (c.guest == id && user_of(c) != id) || leaves_as_owner(id, c); });
}

CpuSet Ledger::free_cpus() const {
    return cpus_where(
        [](const Cpu& c) { return c.state == CpuState::kLent && c.guest == kNobody && c.here; });
}

}  // namespace heddle
