#include <fmt/format.h>
#include <sched.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <vector>

#include "heddle/error.hpp"
#include "heddle/machine.hpp"
#include "topology/allowance_watch.hpp"

namespace heddle {

CpuSet thread_affinity() {
    std::vector<unsigned long> words(CpuSet::kMaxCpus / 64);
    auto* mask = reinterpret_cast<cpu_set_t*>(words.data());
    const size_t bytes = words.size() * sizeof(words[0]);
    if (sched_getaffinity(0, bytes, mask) != 0)
        throw Error(ErrorCode::kSystem,
                    fmt::format("cannot read this thread's affinity: {}", std::strerror(errno)));
    return CpuSet::from_native(mask, bytes);
}

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
    return combine(machine, thread_affinity(), read_cgroup_limits(SystemFiles{}));
}

}  // namespace heddle
