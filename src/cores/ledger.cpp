// The Ledger's calls on one CPU, and its members coming and going. Calls on many: ledger_many.cpp.
#include "cores/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "heddle/error.hpp"

namespace heddle {
namespace {

void check_limit(const char* what, int value, int max) {
    if (value < 1 || value > max)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("a ledger with {} {}: use 1 to {}", value, what, max));
}

}  // namespace

void Actions::spill(const Action& action) {
    if (size_ == kInline) spilled_.assign(inline_data(), inline_data() + kInline);
    spilled_.push_back(action);
}

Ledger::Ledger(Machine machine, const LedgerLimits& limits) : machine_(std::move(machine)), limits_(limits) {
    check_limit("members", limits.members, kMaxMembers);
    check_limit("requests per CPU", limits.requests_per_cpu, kMaxRequestsPerCpu);
    check_limit("petitions", limits.petitions, 1 << 20);
    cpus_.resize(static_cast<size_t>(machine_.cpus().last() + 1));
    for (const int cpu : machine_.cpus()) at(cpu).exists = true;
    free_.resize((cpus_.size() + 63) / 64);
    members_.resize(static_cast<size_t>(limits.members));
    petitions_.reserve(static_cast<size_t>(std::min(limits.petitions, 1024)));
}

MemberId Ledger::attach(std::string_view name, const CpuSet& owned, Actions& actions) {
    for (const int cpu : owned) {
        if (!exists(cpu))
            throw Error(ErrorCode::kPermission, fmt::format("'{}' cannot own CPU {}: the machine has CPUs {}",
                                                            name, cpu, machine_.cpus().to_list()));
        if (at(cpu).owner != kNobody)
            throw Error(ErrorCode::kPermission,
                        fmt::format("'{}' cannot own CPU {}: '{}' owns it; let each CPU have one owner", name,
                                    cpu, this->name(at(cpu).owner)));
    }
    const auto place = std::ranges::find(members_, kNobody, &Member::id);
    if (place == members_.end())
        throw Error(ErrorCode::kLimit, fmt::format("'{}' cannot attach: {} members are attached, the limit",
                                                   name, members_.size()));

    // An id is the slot and how often it was used, from 1, so that no id is 0 and an old one is not taken for
    // its successor.
    const uint32_t uses = place->uses % (UINT32_MAX / kMaxMembers) + 1;
    const auto number = static_cast<uint32_t>(place - members_.begin());
    *place = Member{.id = {uses * kMaxMembers + number}, .uses = uses, .name = std::string(name)};
    for (const int cpu : owned) {
        change(cpu, place->id, guest_for(at(cpu), place->id), CpuState::kBusy, actions);
    }
    return place->id;
}

Outcome Ledger::detach(MemberId id, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    member->detaching = true;
    drop_requests(*member);
    for (const int cpu : machine_.cpus()) {
        const Cpu& c = at(cpu);
        const bool mine = c.owner == id;
        if (!mine && c.guest != id) continue;
        const MemberId owner = mine ? kNobody : c.owner;
        const CpuState state =
            !mine ? c.state : (limits_.lend_after_exit || shared_ ? CpuState::kLent : CpuState::kDisabled);
        if (c.guest == id)
            vacate(cpu, owner, state, actions);
        else
            change(cpu, owner, c.guest, state, actions);
    }
    member->id = kNobody;
    member->name.clear();
    return Outcome::kSuccess;
}

Outcome Ledger::enable(MemberId id, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (member->enabled) return Outcome::kNoUpdate;
    member->enabled = true;
    if (member->max > 0) lend_excess(*member, member->max, actions);
    return Outcome::kSuccess;
}

Outcome Ledger::disable(MemberId id, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled) return Outcome::kDisabled;
    member->enabled = false;
    drop_requests(*member);
    for (const int cpu : machine_.cpus()) {
        const Cpu& c = at(cpu);
        if (c.owner == id)
            change(cpu, id, guest_for(c, id), CpuState::kBusy, actions);
        else if (c.guest == id)
            vacate(cpu, c.owner, c.state, actions);
    }
    return Outcome::kSuccess;
}

Outcome Ledger::set_max_parallelism(MemberId id, int max, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled) return Outcome::kDisabled;
    if (max < 0) return Outcome::kPermission;
    if (member->max == max) return Outcome::kNoUpdate;
    member->max = max;
    if (max > 0) {
        lend_excess(*member, max, actions);
        if (member->usable >= max) drop_requests(*member);
    }
    return Outcome::kSuccess;
}

// Inlined all the way down: these two are the fast path of a program that lends around each wait.
[[gnu::flatten]] Outcome Ledger::lend_cpu(MemberId id, int cpu, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled) return Outcome::kDisabled;
    if (!exists(cpu)) return Outcome::kPermission;
    lend_one(*member, cpu, actions);
    return Outcome::kSuccess;
}

[[gnu::flatten]] Outcome Ledger::reclaim_cpu(MemberId id, int cpu, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled) return Outcome::kDisabled;
    if (!exists(cpu)) return Outcome::kPermission;
    return reclaim_one(*member, cpu, actions);
}

Outcome Ledger::acquire_cpu(MemberId id, int cpu, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled) return Outcome::kDisabled;
    if (!exists(cpu)) return Outcome::kPermission;
    return acquire_one(*member, cpu, actions);
}

Outcome Ledger::borrow_cpu(MemberId id, int cpu, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled) return Outcome::kDisabled;
    if (!exists(cpu)) return Outcome::kPermission;
    return borrow_one(*member, cpu, actions);
}

Outcome Ledger::return_cpu(MemberId id, int cpu, Actions& actions) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled && !(exists(cpu) && returns_disabled(id, {cpu}))) return Outcome::kDisabled;
    if (!exists(cpu)) return Outcome::kPermission;
    return return_one(*member, cpu, actions);
}

Outcome Ledger::withdraw(MemberId id, int cpu) {
    Member* member = find(id);
    if (member == nullptr) return Outcome::kPermission;
    if (!member->enabled) return Outcome::kDisabled;
    if (!exists(cpu)) return Outcome::kPermission;
    if (member->requests == 0 && member->petitions == 0) return Outcome::kNoUpdate;
    withdraw(*member, cpu);
    return Outcome::kSuccess;
}

void Ledger::lend_one(Member& member, int cpu, Actions& actions) {
    withdraw(member, cpu);
    const Cpu& c = at(cpu);
    const CpuState state = c.owner == member.id ? CpuState::kLent : c.state;
    if (c.guest == member.id)
        vacate(cpu, c.owner, state, actions);
    else
        change(cpu, c.owner, c.guest, state, actions);
}

Outcome Ledger::reclaim_one(Member& member, int cpu, Actions& actions) {
    const Cpu& c = at(cpu);
    if (c.owner != member.id) return Outcome::kPermission;
    if (c.guest == member.id && c.here) return Outcome::kNoUpdate;
    if (c.state == CpuState::kBusy) return Outcome::kNoted;
    if (room(member) == 0) return Outcome::kNoUpdate;
    if (c.guest == kNobody && c.here) {
        change(cpu, member.id, member.id, CpuState::kBusy, actions);
        return Outcome::kSuccess;
    }
    change(cpu, member.id, c.guest, CpuState::kBusy, actions);
    return Outcome::kNoted;
}

Outcome Ledger::acquire_one(Member& member, int cpu, Actions& actions) {
    if (at(cpu).owner == member.id) return reclaim_one(member, cpu, actions);
    if (borrow_one(member, cpu, actions) == Outcome::kSuccess) return Outcome::kSuccess;
    return queue_one(member, cpu);
}

Outcome Ledger::queue_one(Member& member, int cpu) {
    Cpu& c = at(cpu);
    if (room(member) == 0 || user_of(c) == member.id) return Outcome::kNoUpdate;
    const auto end = c.queue.begin() + c.waiting;
    if (std::find(c.queue.begin(), end, member.id) != end) return Outcome::kNoted;
    if (c.waiting == limits_.requests_per_cpu) return Outcome::kTooManyRequests;
    wanted_ -= wanted(c);
    c.queue[c.waiting++] = member.id;
    wanted_ += wanted(c);
    ++member.requests;
    return Outcome::kNoted;
}

Outcome Ledger::borrow_one(Member& member, int cpu, Actions& actions) {
    const Cpu& c = at(cpu);
    if (c.state != CpuState::kLent || c.guest != kNobody || !c.here || room(member) == 0)
        return Outcome::kNoUpdate;
    change(cpu, c.owner, member.id, c.owner == member.id ? CpuState::kBusy : CpuState::kLent, actions);
    return Outcome::kSuccess;
}

Outcome Ledger::return_one(Member& member, int cpu, Actions& actions) {
    Cpu& c = at(cpu);
    if (leaves_as_owner(member.id, c)) {
        c.owner_leaves = false;
        return Outcome::kSuccess;
    }
    if (c.guest != member.id) return Outcome::kPermission;
    if (c.here && (c.owner == member.id || c.state == CpuState::kLent)) return Outcome::kNoUpdate;
    vacate(cpu, c.owner, c.state, actions);
    return Outcome::kSuccess;
}

void Ledger::vacate(int cpu, MemberId owner, CpuState state, Actions& actions) {
    if (const Cpu& c = at(cpu); !c.here)
        return change(cpu, owner, c.owner_leaves ? owner : kNobody, state, actions);
    if (state == CpuState::kBusy) return change(cpu, owner, owner, state, actions);
    // The next guest is never the owner: lending a CPU withdraws the owner's requests for it, and whoever
    // asks for CPUs has its own first.
    change(cpu, owner, state == CpuState::kLent ? next_guest(cpu) : kNobody, state, actions);
}

MemberId Ledger::next_guest(int cpu) {
    Cpu& c = at(cpu);
    if (c.waiting > 0) {
        const MemberId first = c.queue[0];
        leave_queue(at(first), c);
        return first;
    }
    for (auto petition = petitions_.begin(); petition != petitions_.end(); ++petition) {
        if (!petition->allowed.contains(cpu)) continue;
        const MemberId first = petition->member;
        --petitioned_;
        if (--petition->wanted == 0) {
            --at(first).petitions;
            petitions_.erase(petition);
        }
        return first;
    }
    return kNobody;
}

void Ledger::change(int cpu, MemberId owner, MemberId guest, CpuState state, bool here, Actions& actions) {
    Cpu& c = at(cpu);
    const MemberId before = user_of(c);
    const MemberId after = user_of(owner, guest, state, here);
    set_free(cpu, here && state == CpuState::kLent && guest == kNobody);
    if (!here && c.guest != kNobody && guest == kNobody) ++departures_;
    wanted_ -= wanted(c);
    c.owner = owner;
    c.guest = guest;
    c.state = state;
    c.here = here;
    if (c.owner_leaves && (here || state != CpuState::kBusy || guest == owner)) c.owner_leaves = false;
    wanted_ += wanted(c);
    if (before == after) return;
    if (before != kNobody) {
        Member& member = at(before);
        --member.usable;
        if (!member.detaching) actions.push(Action::Kind::kDisable, before, cpu);
    }
    if (after != kNobody) {
        Member& member = at(after);
        ++member.usable;
        actions.push(Action::Kind::kEnable, after, cpu);
        if (c.waiting > 0) leave_queue(member, c);
        if (room(member) == 0) drop_requests(member);
    }
}

void Ledger::set_free(int cpu, bool free) noexcept {
    uint64_t& word = free_[static_cast<size_t>(cpu) / 64];
    const uint64_t bit = uint64_t{1} << (cpu % 64);
    if (((word & bit) != 0) == free) return;
    word ^= bit;
    free_count_ += free ? 1 : -1;
}

void Ledger::leave_queue(Member& member, Cpu& cpu) {
    const auto end = cpu.queue.begin() + cpu.waiting;
    const auto place = std::find(cpu.queue.begin(), end, member.id);
    if (place == end) return;
    wanted_ -= wanted(cpu);
    std::copy(place + 1, end, place);
    --cpu.waiting;
    wanted_ += wanted(cpu);
    --member.requests;
}

void Ledger::withdraw(Member& member, int cpu) {
    if (member.requests > 0) leave_queue(member, at(cpu));
    if (member.petitions == 0) return;
    std::erase_if(petitions_, [&](Petition& petition) {
        if (petition.member != member.id || !petition.allowed.contains(cpu)) return false;
        petition.allowed.erase(cpu);
        petitioned_ -= petition.wanted;
        petition.wanted = std::min(petition.wanted, petition.allowed.count());
        petitioned_ += petition.wanted;
        if (petition.wanted > 0) return false;
        --member.petitions;
        return true;
    });
}

void Ledger::drop_requests(Member& member) {
    for (size_t cpu = 0; member.requests > 0 && cpu < cpus_.size(); ++cpu) leave_queue(member, cpus_[cpu]);
    if (member.petitions == 0) return;
    std::erase_if(petitions_, [&](const Petition& petition) {
        if (petition.member == member.id) petitioned_ -= petition.wanted;
        return petition.member == member.id;
    });
    member.petitions = 0;
}

MemberId Ledger::user_of(MemberId owner, MemberId guest, CpuState state, bool here) noexcept {
    if (!here) return kNobody;
    switch (state) {
        case CpuState::kBusy:
            return owner;
        case CpuState::kLent:
            return guest;
        case CpuState::kDisabled:
            break;
    }
    return kNobody;
}

int Ledger::room(const Member& member) noexcept {
    return member.max == 0 ? INT32_MAX : std::max(0, member.max - member.usable);
}

Ledger::Member& Ledger::at(MemberId id) noexcept {
    return members_[slot(id)];
}

Ledger::Member* Ledger::find(MemberId id) noexcept {
    const size_t place = slot(id);
    return id != kNobody && place < members_.size() && members_[place].id == id ? &members_[place] : nullptr;
}

const Ledger::Member* Ledger::find(MemberId id) const noexcept {
    return const_cast<Ledger*>(this)->find(id);
}

bool Ledger::exists(int cpu) const noexcept {
    return cpu >= 0 && static_cast<size_t>(cpu) < cpus_.size() && at(cpu).exists;
}

}  // namespace heddle
