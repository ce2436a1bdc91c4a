#include "cores/compact_set.hpp"

#include <vector>

namespace heddle {
namespace {

int distinct(std::vector<bool> seen, const Machine& machine, const CpuSet& cpus, int CpuPlace::*unit) {
    int count = 0;
    for (const int cpu : cpus) {
        const auto index = static_cast<size_t>(machine.place(cpu).*unit);
        if (!seen[index]) ++count;
        seen[index] = true;
    }
    return count;
}

/// The CPUs of each unit (package, NUMA node, core), by its index.
std::vector<CpuSet> units(const Machine& machine, int count, int CpuPlace::*unit) {
    std::vector<CpuSet> sets(static_cast<size_t>(count));
    for (const CpuPlace& place : machine.places()) sets[static_cast<size_t>(place.*unit)].insert(place.cpu);
    return sets;
}

}  // namespace

Extent extent(const Machine& machine, const CpuSet& cpus) {
    const CpuSet known = cpus & machine.cpus();
    const auto count = [&](int all, int CpuPlace::*unit) {
        return distinct(std::vector<bool>(static_cast<size_t>(all)), machine, known, unit);
    };
    return {count(machine.package_count(), &CpuPlace::package), count(machine.numa_count(), &CpuPlace::numa),
            count(machine.core_count(), &CpuPlace::core)};
}

CpuSet compact_set(const Machine& machine, const CpuSet& used, const CpuSet& available) {
    const int count = used.count();
    CpuSet best = used;
    Extent best_extent = extent(machine, used);
    int best_kept = count;
    const auto consider = [&](const CpuSet& candidate) {
        if (candidate.count() != count) return;
        const Extent size = extent(machine, candidate);
        const int kept = (candidate & used).count();
        if (size > best_extent || (size == best_extent && kept <= best_kept)) return;
        best = candidate;
        best_extent = size;
        best_kept = kept;
    };
    if (count == 0 || available == used) return best;

    // Whoever sits on a core that is in use as a whole should stay: those sets are tried, too.
    CpuSet settled;
    for (const CpuSet& core : units(machine, machine.core_count(), &CpuPlace::core)) {
        const CpuSet threads = core & available;
        if (!threads.empty() && used.contains(threads)) settled |= threads;
    }
    const auto consider_within = [&](const CpuSet& region) {
        const CpuSet here = available & region;
        if (here.count() < count) return;
        consider(machine.nearest({}, here, count));
        consider(machine.nearest(settled & here, here, count));
        consider(machine.nearest(used & here, here, count));
    };
    consider_within(machine.cpus());
    for (const CpuSet& package : units(machine, machine.package_count(), &CpuPlace::package))
        consider_within(package);
    for (const CpuSet& node : units(machine, machine.numa_count(), &CpuPlace::numa)) consider_within(node);
    return best;
}

}  // namespace heddle
