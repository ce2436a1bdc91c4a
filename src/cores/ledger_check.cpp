// What the Ledger tells about itself: single facts, and whether its books balance.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cores/ledger.hpp"

namespace heddle {

std::string_view to_string(Outcome outcome) noexcept {
    switch (outcome) {
        case Outcome::kSuccess:
            return "success";
        case Outcome::kNoted:
            return "noted";
        case Outcome::kNoUpdate:
            return "no_update";
        case Outcome::kDisabled:
            return "disabled";
        case Outcome::kPermission:
            return "permission";
        case Outcome::kTooManyRequests:
            return "too_many_requests";
    }
    return "unknown";
}

MemberId Ledger::owner(int cpu) const noexcept {
    return exists(cpu) ? at(cpu).owner : kNobody;
}

MemberId Ledger::guest(int cpu) const noexcept {
    return exists(cpu) ? at(cpu).guest : kNobody;
}

CpuState Ledger::state(int cpu) const noexcept {
    return exists(cpu) ? at(cpu).state : CpuState::kDisabled;
}

MemberId Ledger::user(int cpu) const noexcept {
    return exists(cpu) ? user_of(at(cpu)) : kNobody;
}

std::vector<MemberId> Ledger::requests(int cpu) const {
    if (!exists(cpu)) return {};
    const Cpu& c = at(cpu);
    return {c.queue.begin(), c.queue.begin() + c.waiting};
}

Outcome Ledger::check_cpu(MemberId member, int cpu) const noexcept {
    if (member == kNobody || user(cpu) != member) return Outcome::kPermission;
    return guest(cpu) == member ? Outcome::kSuccess : Outcome::kNoted;
}

bool Ledger::attached(MemberId member) const noexcept {
    return find(member) != nullptr;
}

bool Ledger::enabled(MemberId member) const noexcept {
    const Member* found = find(member);
    return found != nullptr && found->enabled;
}

int Ledger::max_parallelism(MemberId member) const noexcept {
    const Member* found = find(member);
    return found == nullptr ? 0 : found->max;
}

std::string_view Ledger::name(MemberId member) const noexcept {
    const Member* found = find(member);
    return found == nullptr ? std::string_view{} : found->name;
}

int Ledger::usable_count(MemberId member) const noexcept {
    const Member* found = find(member);
    return found == nullptr ? 0 : found->usable;
}

CpuSet Ledger::awaited(MemberId member) const {
    CpuSet cpus;
    for (const int cpu : usable(member))
        if (at(cpu).waiting > 0 || std::ranges::any_of(petitions_, [&](const Petition& petition) {
                return petition.member != member && petition.allowed.contains(cpu);
            }))
            cpus.insert(cpu);
    return cpus;
}

int Ledger::petitioned(MemberId member) const noexcept {
    int wanted = 0;
    for (const Petition& petition : petitions_)
        if (petition.member == member) wanted += petition.wanted;
    return wanted;
}

std::vector<MemberId> Ledger::members() const {
    std::vector<MemberId> ids;
    for (const Member& member : members_)
        if (member.id != kNobody) ids.push_back(member.id);
    return ids;
}

std::string Ledger::check() const {
    struct Count {
        int usable = 0, requests = 0, petitions = 0;
    };
    std::map<MemberId, Count> counts;
    int free = 0, want = 0, petitioned = 0;
    for (int cpu = 0; cpu < static_cast<int>(cpus_.size()); ++cpu) {
        const Cpu& c = at(cpu);
        const auto wrong = [&](const char* what) { return fmt::format("CPU {}: {}", cpu, what); };
        const bool is_free = c.here && c.state == CpuState::kLent && c.guest == kNobody;
        if (!c.exists && (c.owner != kNobody || c.guest != kNobody || c.state != CpuState::kDisabled))
            return wrong("is not in the machine but in use");
        if (c.owner != kNobody && find(c.owner) == nullptr) return wrong("its owner is not attached");
        if (c.guest != kNobody && find(c.guest) == nullptr) return wrong("its guest is not attached");
        if (c.state == CpuState::kBusy && c.owner == kNobody) return wrong("is busy without an owner");
        if (c.state == CpuState::kBusy && c.guest == kNobody && c.here)
            return wrong("is busy with nobody on it");
        if (c.state == CpuState::kDisabled && c.owner != kNobody)
            return wrong("is disabled in spite of an owner");
        if (c.state == CpuState::kLent && c.owner == kNobody && !limits_.lend_after_exit && !shared_)
            return wrong("is lent by nobody");
        if (c.state == CpuState::kLent && c.guest != kNobody && c.guest == c.owner)
            return wrong("is lent to its owner");
        if (c.owner != kNobody && !find(c.owner)->enabled && c.state != CpuState::kBusy)
            return wrong("its owner is disabled and does not have it");
        if (c.guest != kNobody && c.guest != c.owner && !find(c.guest)->enabled)
            return wrong("its guest is disabled");
        if (((free_[static_cast<size_t>(cpu) / 64] >> (cpu % 64)) & 1) != (is_free ? 1U : 0U))
            return wrong("the free set is wrong about it");
        free += is_free ? 1 : 0;
        want += wanted(c);
        if (c.owner_leaves &&
            (c.here || c.state != CpuState::kBusy || c.guest == kNobody || c.guest == c.owner))
            return wrong("its owner has to leave it and is not beside a guest");
        if (!c.here && !shared_) return wrong("is away from a ledger that is not shared");
        if (c.exists && shared_ && c.state == CpuState::kDisabled) return wrong("is for nobody");
        if (const MemberId user = user_of(c); user != kNobody) ++counts[user].usable;

        if (is_free && c.waiting > 0) return wrong("is free while a request waits for it");
        if (c.waiting > limits_.requests_per_cpu) return wrong("has too many requests");
        for (const MemberId waiting : requests(cpu)) {
            if (find(waiting) == nullptr) return wrong("a member that is gone waits for it");
            if (waiting == c.owner) return wrong("its owner waits for it");
            if (waiting == user(cpu)) return wrong("its user waits for it");
            ++counts[waiting].requests;
        }
    }
    if (free != free_count_) return fmt::format("{} CPUs are free, not {}", free, free_count_);

    if (want != wanted_) return fmt::format("{} CPUs are wanted, not {}", want, wanted_);
    const CpuSet idle = free_cpus();
    if (petitions_.size() > static_cast<size_t>(limits_.petitions)) return "too many petitions";
    for (const Petition& petition : petitions_) {
        if (find(petition.member) == nullptr) return "a member that is gone petitions";
        if (petition.wanted < 1 || petition.wanted > petition.allowed.count())
            return fmt::format("a petition of '{}' wants {} of {} CPUs", name(petition.member),
                               petition.wanted, petition.allowed.count());
        if (petition.allowed.intersects(idle))
            return fmt::format("a petition of '{}' waits while a CPU is free", name(petition.member));
        petitioned += petition.wanted;
        if (petition.allowed.intersects(lent(petition.member)))
            return fmt::format("'{}' petitions for what it lends", name(petition.member));
        ++counts[petition.member].petitions;
    }
    if (petitioned != petitioned_)
        return fmt::format("petitions want {} CPUs, not {}", petitioned, petitioned_);
    for (const Member& member : members_) {
        if (member.id == kNobody) continue;
        const Count count = counts[member.id];
        if (count.usable != member.usable || count.requests != member.requests ||
            count.petitions != member.petitions)
            return fmt::format("the counts of '{}' are wrong", member.name);
        if ((!member.enabled || room(member) == 0) && member.requests + member.petitions > 0)
            return fmt::format("'{}' waits and may not have more", member.name);
    }
    return "";
}

}  // namespace heddle
