#include "topology/allowance_watch.hpp"

#include <utility>

#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

bool same(const CpuAllowance& a, const CpuAllowance& b) {
    return a.affinity == b.affinity && a.cpuset == b.cpuset && a.quota_cpus == b.quota_cpus &&
           a.usable == b.usable;
}

const FileSystem& system_files() {
    static const SystemFiles files;
    return files;
}

}  // namespace

AllowanceWatch::AllowanceWatch(Machine machine) : AllowanceWatch(std::move(machine), system_files()) {}

AllowanceWatch::AllowanceWatch(Machine machine, const FileSystem& files)
    : machine_(std::move(machine)), system_(files) {
    if (machine_.synthetic()) {
        current_ = allowance(machine_);
        return;
    }
    current_.affinity = thread_affinity();
    // Watched before they are read for good, so that no write falls in between.
    files_.emplace();
    watch(read_cgroup_limits(system_).sources);
    (void)refresh();
}

void AllowanceWatch::watch(std::vector<std::string> sources) {
    files_->change(sources_, sources);
    sources_ = std::move(sources);
}

bool AllowanceWatch::refresh() {
    if (machine_.synthetic()) return false;
    (void)files_->written();
    const CgroupLimits limits = read_cgroup_limits(system_);
    // For want of descriptors, say: it stays as it is, until the caller looks again.
    if (!limits.is_whole && was_whole_) return false;
    was_whole_ = limits.is_whole;
    watch(limits.sources);
    CpuAllowance now = combine(machine_, thread_affinity(), limits);
    const bool changed = !same(now, current_);
    current_ = std::move(now);
    return changed;
}

}  // namespace heddle
