// What the control groups of this process allow, the cpuset, the CPU quota and memory, of cgroup v1, v2 or
// both; and which group limits the CPUs of another process.
//
// Pure reading through FileSystem; any thread. Never throws on what it reads: a file that is missing or does
// not parse limits nothing, because a limit that cannot be read must not stop a program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.hpp"
#include "heddle/cpu_set.hpp"

namespace heddle {

/// Names of groups that an arbiter makes to keep a process off CPUs begin with this.
constexpr const char* kFenceGroup = "heddle-fence-";

struct CgroupLimits {
    struct Quota {
        double cpus;
        uint64_t group;  ///< FileSystem::identity() of whose it is
    };

    std::optional<CpuSet> cpuset;      ///< nothing where no cpuset is in force
    std::vector<Quota> quotas;         ///< of the group and its ancestors, ancestor before group
    std::vector<std::string> sources;  ///< files whose writing may change the above, group before ancestor
    bool is_whole = true;              ///< all that is there could be read

    /// The tightest; 0: none.
    [[nodiscard]] double quota_cpus() const;
};

/// Reads /proc/PROCESS/cgroup, /proc/self/mountinfo and from there the files of the process's groups. Groups
/// above the mount (as in a container) cannot be seen; their cpuset shows in the group's effective one, their
/// quota does not.
[[nodiscard]] CgroupLimits read_cgroup_limits(const FileSystem& files, const std::string& process = "self");

/// In bytes; UINT64_MAX where nothing is known.
struct MemoryRoom {
    uint64_t total = UINT64_MAX;  ///< of the machine, or the tightest limit of the group and its ancestors
    uint64_t free = UINT64_MAX;   ///< what of it is not in use, or is so for files that can be read again
    friend bool operator==(const MemoryRoom&, const MemoryRoom&) = default;
};

/// Reads /proc/meminfo, and the groups as read_cgroup_limits() does.
[[nodiscard]] MemoryRoom read_memory_room(const FileSystem& files);

/// The innermost group by which the CPUs of a process are limited, as its folder, and the uppermost folder of
/// that hierarchy that is mounted.
struct CpusetGroup {
    std::string folder;
    std::string top;
    bool unified;  ///< of cgroup v2
    friend bool operator==(const CpusetGroup&, const CpusetGroup&) = default;
};

/// The group of a process or, with `thread`, of one of its threads ("self" is a process too). Of v1's cpuset
/// where that is mounted, else of v2, whether or not it has the cpuset controller; nothing where there is
/// neither, or the group is outside what is mounted.
[[nodiscard]] std::optional<CpusetGroup> cpuset_group_of(const FileSystem& files, const std::string& process,
                                                         const std::string& thread = "");

}  // namespace heddle
