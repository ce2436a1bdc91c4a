#include <algorithm>
#include <cmath>

#include "heddle/machine.hpp"
#include "topology/allowance_watch.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

constexpr int kMostParts = 64;

/// `count` of the CPUs, near each other: always the same for a group, and mostly others for another, so that
/// containers with quotas, which know nothing of each other, spread over their machine.
CpuSet part_of(const Machine& machine, CpuSet cpus, int count, uint64_t group) {
    // The finalizer of MurmurHash3: numbers of groups made one after the other differ by little.
    group = (group ^ (group >> 33)) * 0xff51afd7ed558ccdULL;
    group = (group ^ (group >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    group ^= group >> 33;
    const int parts = std::min(cpus.count() / count, kMostParts);
    for (auto others = group % static_cast<uint64_t>(parts); others > 0; --others)
        cpus -= machine.nearest({}, cpus, count);
    return machine.nearest({}, cpus, count);
}

}  // namespace

CpuAllowance combine(const Machine& machine, const CpuSet& affinity, const CgroupLimits& limits) {
    CpuAllowance allowed;
    allowed.affinity = affinity;
    allowed.cpuset = limits.cpuset.value_or(machine.cpus());
    allowed.quota_cpus = limits.quota_cpus();
    allowed.usable = affinity & allowed.cpuset & machine.cpus();
    // The two are read one after the other; where a change in between leaves nothing, what the kernel
    // schedules by is the affinity.
    if (allowed.usable.empty()) allowed.usable = affinity & machine.cpus();
    if (allowed.usable.empty()) allowed.usable = machine.cpus();
    // One within the other, so that what a group chooses is part of what its ancestors do.
    for (const auto& [cpus, group] : limits.quotas)
        if (cpus < allowed.usable.count())
            allowed.usable = part_of(machine, allowed.usable, static_cast<int>(std::ceil(cpus)), group);
    return allowed;
}

CpuAllowance allowance(const Machine& machine) {
    if (machine.synthetic()) return {machine.cpus(), machine.cpus(), 0, machine.cpus()};
    return combine(machine, outer_affinity(), read_cgroup_limits(SystemFiles{}));
}

}  // namespace heddle
