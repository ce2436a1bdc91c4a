#include <cmath>

#include "heddle/machine.hpp"
#include "topology/allowance_watch.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle {

CpuAllowance combine(const Machine& machine, const CpuSet& affinity, const CgroupLimits& limits) {
    CpuAllowance allowed;
    allowed.affinity = affinity;
    allowed.cpuset = limits.cpuset.value_or(machine.cpus());
    allowed.quota_cpus = limits.quota_cpus;
    allowed.usable = affinity & allowed.cpuset & machine.cpus();
    // The two are read one after the other; where a change in between leaves nothing, what the kernel
    // schedules by is the affinity.
    if (allowed.usable.empty()) allowed.usable = affinity & machine.cpus();
    if (allowed.usable.empty()) allowed.usable = machine.cpus();
    if (allowed.quota_cpus > 0 && allowed.quota_cpus < allowed.usable.count())
        allowed.usable = machine.nearest({}, allowed.usable, static_cast<int>(std::ceil(allowed.quota_cpus)));
    return allowed;
}

CpuAllowance allowance(const Machine& machine) {
    if (machine.synthetic()) return {machine.cpus(), machine.cpus(), 0, machine.cpus()};
    return combine(machine, outer_affinity(), read_cgroup_limits(SystemFiles{}));
}

}  // namespace heddle
