#include "cores/compact_set.hpp"

#include <algorithm>
#include <functional>
#include <utility>
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

/// `count` CPUs of `available` on as few cores as possible, and of these on those where the used ones are.
CpuSet fullest_cores(const std::vector<CpuSet>& cores, const CpuSet& used, const CpuSet& available,
                     int count) {
    std::vector<CpuSet> threads;
    for (const CpuSet& core : cores)
        if (const CpuSet here = core & available; !here.empty()) threads.push_back(here);
    std::ranges::stable_sort(threads, std::ranges::greater(), [&](const CpuSet& core) {
        return std::pair(core.count(), (core & used).count());
    });
    CpuSet chosen;
    for (const CpuSet& core : threads)
        for (const CpuSet& part : {core & used, core - used})
            for (const int cpu : part)
                if (count-- > 0) chosen.insert(cpu);
    return chosen;
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
    const std::vector<CpuSet> cores = units(machine, machine.core_count(), &CpuPlace::core);
    for (const CpuSet& core : cores) {
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
    const std::vector<CpuSet> packages = units(machine, machine.package_count(), &CpuPlace::package);
    for (const CpuSet& package : packages) consider_within(package);
    const std::vector<CpuSet> nodes = units(machine, machine.numa_count(), &CpuPlace::numa);
    for (const CpuSet& node : nodes) consider_within(node);
    // Machine::nearest fills the roomiest place first, which may cost a core where several places are needed.
    const auto around_best = [&](const std::vector<CpuSet>& parts) {
        CpuSet around;
        for (const CpuSet& part : parts)
            if (part.intersects(best)) around |= part;
        return around;
    };
    consider(fullest_cores(cores, used, available & around_best(nodes) & around_best(packages), count));
    return best;
}

}  // namespace heddle
