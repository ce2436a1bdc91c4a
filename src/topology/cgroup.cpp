#include "topology/cgroup.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "heddle/error.hpp"

namespace heddle {
namespace {

using std::string_view;

constexpr size_t kMaxPath = 4096;

/// Calls visit with each part of the text between separators.
template <typename Visit>
void for_each_part(string_view text, char separator, Visit visit) {
    while (!text.empty()) {
        const size_t end = std::min(text.find(separator), text.size());
        visit(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

std::vector<string_view> split(string_view text, char separator) {
    std::vector<string_view> parts;
    for_each_part(text, separator, [&](string_view part) { parts.push_back(part); });
    return parts;
}

bool lists(string_view comma_list, string_view name) {
    const auto names = split(comma_list, ',');
    return std::ranges::find(names, name) != names.end();
}

struct Mount {
    std::string root;  ///< the group that is mounted, as a path in its hierarchy
    std::string point;
};

/// mountinfo writes space, tab, newline and backslash in octal: \040.
std::string unescaped(string_view text) {
    std::string plain;
    for (size_t i = 0; i < text.size(); ++i) {
        unsigned code = 0;
        if (text[i] == '\\' && i + 3 < text.size() &&
            std::from_chars(text.data() + i + 1, text.data() + i + 4, code, 8).ptr == text.data() + i + 4) {
            plain += static_cast<char>(code & 0xff);
            i += 3;
        } else {
            plain += text[i];
        }
    }
    return plain;
}

/// The mounts of a controller: of cgroup v1, or of v2 where controller is "".
std::vector<Mount> mounts_of(string_view mountinfo, string_view controller) {
    std::vector<Mount> mounts;
    for_each_part(mountinfo, '\n', [&](string_view line) {
        // 36 35 98:0 ROOT POINT OPTIONS [optional...] - TYPE SOURCE SUPER-OPTIONS, see proc(5)
        const size_t dash = line.find(" - ");
        if (dash == string_view::npos) return;
        const auto before = split(line.substr(0, dash), ' ');
        const auto after = split(line.substr(dash + 3), ' ');
        if (before.size() < 6 || after.size() < 3) return;
        const bool wanted = controller.empty() ? after[0] == "cgroup2"
                                               : after[0] == "cgroup" && lists(after.back(), controller);
        if (wanted) mounts.push_back({unescaped(before[3]), unescaped(before[4])});
    });
    return mounts;
}

/// The process's group in the hierarchy of a controller ("" for v2), or nothing where it is in none.
std::optional<std::string> group_of(string_view self_cgroup, string_view controller) {
    std::optional<std::string> group;
    for_each_part(self_cgroup, '\n', [&](string_view line) {
        const size_t first = line.find(':');
        if (first == string_view::npos) return;
        const size_t second = line.find(':', first + 1);
        if (second == string_view::npos) return;
        const string_view controllers = line.substr(first + 1, second - first - 1);
        if (controller.empty() ? controllers.empty() && line.starts_with("0:")
                               : lists(controllers, controller))
            group = std::string(line.substr(second + 1));
    });
    return group;
}

/// The rest of `group` below `root` ("" for root itself), or nothing where it is not below it.
std::optional<std::string> below(const std::string& group, const std::string& root) {
    if (root == "/") return group == "/" ? "" : group;
    // A mount whose root is above the cgroup namespace is an ancestor, at a place that cannot be told.
    if (root == "/.." || root.starts_with("/../")) return "";
    if (!group.starts_with(root)) return std::nullopt;
    if (group.size() > root.size() && group[root.size()] != '/') return std::nullopt;
    return group.substr(root.size());
}

/// The directories of the process's group and of its ancestors as far as they are mounted, innermost first.
std::vector<std::string> group_directories(string_view self_cgroup, string_view mountinfo,
                                           string_view controller) {
    const auto group = group_of(self_cgroup, controller);
    if (!group || group->size() > kMaxPath) return {};
    if (!group->starts_with('/') || *group == "/.." || group->starts_with("/../")) return {};
    std::vector<std::string> directories;
    for (const Mount& mount : mounts_of(mountinfo, controller)) {
        const auto rest = below(*group, mount.root);
        if (!rest) continue;
        std::vector<std::string> found;
        for (std::string path = *rest; !path.empty(); path.resize(path.rfind('/')))
            found.push_back(mount.point + path);
        found.push_back(mount.point);
        if (found.size() > directories.size()) directories = std::move(found);
    }
    return directories;
}

std::optional<CpuSet> read_cpus(const FileSystem& files, const std::string& path) {
    const auto text = files.read(path);
    if (!text) return std::nullopt;
    try {
        CpuSet cpus = CpuSet::parse(*text);
        if (cpus.empty()) return std::nullopt;  // v2 writes so where the group inherits
        return cpus;
    } catch (const Error&) {
        return std::nullopt;
    }
}

std::optional<double> number(string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    long value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || end != text.data() + text.size() || value <= 0) return std::nullopt;
    return static_cast<double>(value);
}

void add_quota(const FileSystem& files, const std::string& group, std::optional<double> time,
               std::optional<double> period, CgroupLimits& limits) {
    if (time && period) limits.quotas.insert(limits.quotas.begin(), {*time / *period, files.identity(group)});
}

/// Notes what is there and cannot be read, as without descriptors.
class WhatIsThere final : public FileSystem {
  public:
    WhatIsThere(const FileSystem& files, bool& is_whole) : files_(files), is_whole_(is_whole) {}
    [[nodiscard]] std::optional<std::string> read(const std::string& path) const override {
        auto text = files_.read(path);
        if (!text && files_.identity(path) != 0) is_whole_ = false;
        return text;
    }
    [[nodiscard]] uint64_t identity(const std::string& path) const override { return files_.identity(path); }

  private:
    const FileSystem& files_;
    bool& is_whole_;
};

bool is_fence(string_view directory) {
    return directory.substr(directory.rfind('/') + 1).starts_with(kFenceGroup);
}

/// The innermost cpuset that there is: the kernel has put the ancestors' into it already. That of an
/// arbiter's fence is not the system's.
void add_cpuset(const FileSystem& files, const std::vector<std::string>& directories, const char* effective,
                CgroupLimits& limits) {
    bool found = false;
    for (const std::string& directory : directories) {
        if (is_fence(directory)) continue;
        if (!found)
            if (const auto cpus = read_cpus(files, directory + effective)) {
                limits.cpuset = limits.cpuset ? *limits.cpuset & *cpus : *cpus;
                found = true;
            }
        if (found) limits.sources.push_back(directory + "/cpuset.cpus");
    }
}

uint64_t bytes(string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    uint64_t value = UINT64_MAX;  // "max", too
    (void)std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

/// What stands behind the name, at the beginning of a line; 0 where nothing does.
uint64_t named(string_view text, string_view name) {
    uint64_t value = 0;
    for_each_part(text, '\n', [&](string_view line) {
        if (line.starts_with(name)) value = bytes(line.substr(name.size()));
    });
    return value;
}

/// `cache`: where memory.stat has the file pages, those of shared memory included.
void tighten(const FileSystem& files, const std::string& directory, const char* limit, const char* usage,
             const char* cache, MemoryRoom& room) {
    const uint64_t most = bytes(files.read(directory + limit).value_or(""));
    if (most == UINT64_MAX) return;
    const std::string kinds = files.read(directory + "/memory.stat").value_or("");
    const uint64_t of_files = named(kinds, cache), shared = named(kinds, "shmem ");
    const uint64_t again = of_files - std::min(of_files, shared);
    const uint64_t used = bytes(files.read(directory + usage).value_or("0"));
    room.total = std::min(room.total, most);
    room.free = std::min(room.free, most - std::min(most, used - std::min(used, again)));
}

}  // namespace

double CgroupLimits::quota_cpus() const {
    const auto tightest = std::ranges::min_element(quotas, {}, &Quota::cpus);
    return tightest == quotas.end() ? 0 : tightest->cpus;
}

MemoryRoom read_memory_room(const FileSystem& files) {
    MemoryRoom room;
    const std::string machine = files.read("/proc/meminfo").value_or("");
    if (const uint64_t all = named(machine, "MemTotal:"); all > 0) room.total = all << 10u;
    if (const uint64_t free = named(machine, "MemAvailable:"); free > 0) room.free = free << 10u;
    const std::string self = files.read("/proc/self/cgroup").value_or("");
    const std::string mounts = files.read("/proc/self/mountinfo").value_or("");
    for (const std::string& directory : group_directories(self, mounts, ""))
        tighten(files, directory, "/memory.max", "/memory.current", "file ", room);
    for (const std::string& directory : group_directories(self, mounts, "memory"))
        tighten(files, directory, "/memory.limit_in_bytes", "/memory.usage_in_bytes", "cache ", room);
    return room;
}

std::optional<CpusetGroup> cpuset_group_of(const FileSystem& files, const std::string& process,
                                           const std::string& thread) {
    const std::string folder = "/proc/" + process + (thread.empty() ? "" : "/task/" + thread);
    const std::string groups = files.read(folder + "/cgroup").value_or("");
    const std::string mounts = files.read("/proc/self/mountinfo").value_or("");
    for (const bool unified : {false, true}) {
        const auto folders = group_directories(groups, mounts, unified ? "" : "cpuset");
        if (!folders.empty()) return CpusetGroup{folders.front(), folders.back(), unified};
    }
    return std::nullopt;
}

CgroupLimits read_cgroup_limits(const FileSystem& system, const std::string& process) {
    CgroupLimits limits;
    const WhatIsThere files(system, limits.is_whole);
    const std::string groups = files.read("/proc/" + process + "/cgroup").value_or("");
    const std::string mounts = files.read("/proc/self/mountinfo").value_or("");

    const auto unified = group_directories(groups, mounts, "");
    add_cpuset(files, unified, "/cpuset.cpus.effective", limits);
    for (const std::string& directory : unified) {
        const auto text = files.read(directory + "/cpu.max");  // "MAX PERIOD", MAX is a number or "max"
        if (!text) continue;
        limits.sources.push_back(directory + "/cpu.max");
        const auto parts = split(*text, ' ');
        if (parts.size() == 2) add_quota(files, directory, number(parts[0]), number(parts[1]), limits);
    }

    add_cpuset(files, group_directories(groups, mounts, "cpuset"), "/cpuset.effective_cpus", limits);
    for (const std::string& directory : group_directories(groups, mounts, "cpu")) {
        const auto quota = files.read(directory + "/cpu.cfs_quota_us");  // -1: none
        const auto period = files.read(directory + "/cpu.cfs_period_us");
        if (!quota || !period) continue;
        limits.sources.push_back(directory + "/cpu.cfs_quota_us");
        limits.sources.push_back(directory + "/cpu.cfs_period_us");
        add_quota(files, directory, number(*quota), number(*period), limits);
    }
    return limits;
}

}  // namespace heddle
