// What the control groups of this process allow: the cpuset and the CPU quota, of cgroup v1, v2 or both.
//
// Pure reading through FileSystem; any thread. Never throws on what it reads: a file that is missing or does
// not parse limits nothing, because a limit that cannot be read must not stop a program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file_system.hpp"
#include "heddle/cpu_set.hpp"

namespace heddle {

struct CgroupLimits {
    std::optional<CpuSet> cpuset;      ///< nothing where no cpuset is in force
    double quota_cpus = 0;             ///< the tightest of the group and its ancestors; 0: none
    std::vector<std::string> sources;  ///< files whose writing may change the above, group before ancestor
};

/// Reads /proc/self/cgroup, /proc/self/mountinfo and from there the files of the process's groups. Groups
/// above the mount (as in a container) cannot be seen; their cpuset shows in the group's effective one, their
/// quota does not.
[[nodiscard]] CgroupLimits read_cgroup_limits(const FileSystem& files);

}  // namespace heddle
