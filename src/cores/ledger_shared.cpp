// The Ledger of a process that shares its machine with others: CPUs come and go, and with them what their
// owners, guests and waiting members may do. docs/LEDGER.md has the rules.
#include <algorithm>

#include "cores/ledger.hpp"

namespace heddle {

void Ledger::share(const CpuSet& here, Actions& actions) {
    shared_ = true;
    for (const int cpu : machine_.cpus()) {
        const Cpu& c = at(cpu);
        if (c.state == CpuState::kDisabled) {
            // Nobody's until now, but for a guest whose owner has gone.
            change(cpu, kNobody, c.guest, CpuState::kLent, actions);
            if (c.guest == kNobody) vacate(cpu, kNobody, CpuState::kLent, actions);
        }
    }
    take_away(machine_.cpus() - here, actions);
}

void Ledger::take_away(const CpuSet& cpus, Actions& actions) {
    for (const int cpu : cpus) {
        if (!here(cpu)) continue;
        Cpu& c = at(cpu);
        change(cpu, c.owner, c.guest, c.state, false, actions);
        c.owner_leaves = c.state == CpuState::kBusy && c.guest != c.owner;
    }
}

void Ledger::bring_back(const CpuSet& cpus, Actions& actions) {
    for (const int cpu : cpus) {
        if (!exists(cpu) || here(cpu)) continue;
        const Cpu& c = at(cpu);
        // Who is still on it may stay, also above its maximum, as where an owner lends again.
        const bool owners = c.state == CpuState::kBusy && (c.guest == c.owner || c.owner_leaves ||
                                                           !at(c.owner).enabled || room(at(c.owner)) > 0);
        if (owners) {
            change(cpu, c.owner, c.guest == kNobody ? c.owner : c.guest, CpuState::kBusy, true, actions);
            continue;
        }
        change(cpu, c.owner, c.guest, CpuState::kLent, true, actions);
        if (c.guest == kNobody) vacate(cpu, c.owner, CpuState::kLent, actions);
    }
}

int Ledger::wanted(const Cpu& cpu) noexcept {
    if (cpu.state == CpuState::kBusy) return 1;
    return (cpu.here ? cpu.guest != kNobody : cpu.waiting > 0) ? 1 : 0;
}

MemberId Ledger::guest_for(const Cpu& cpu, MemberId owner) noexcept {
    return cpu.guest == kNobody && cpu.here ? owner : cpu.guest;
}

int Ledger::demand() const noexcept {
    return std::min(wanted_ + petitioned_, machine_.cpus().count());
}

CpuSet Ledger::vacated() const {
    CpuSet cpus;
    for (const int cpu : machine_.cpus())
        if (!here(cpu) && guest(cpu) == kNobody) cpus.insert(cpu);
    return cpus;
}

bool Ledger::returns_disabled(MemberId id, const CpuSet& cpus) const {
    return std::any_of(cpus.begin(), cpus.end(), [&](int cpu) {
        return exists(cpu) && !at(cpu).here && (at(cpu).guest == id || leaves_as_owner(id, at(cpu)));
    });
}

CpuSet Ledger::missed() const {
    CpuSet cpus;
    for (const int cpu : machine_.cpus())
        if (!here(cpu) && wanted(at(cpu)) != 0) cpus.insert(cpu);
    return cpus;
}

}  // namespace heddle
