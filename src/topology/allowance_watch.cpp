#include "topology/allowance_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

bool same(const CpuAllowance& a, const CpuAllowance& b) {
    return a.affinity == b.affinity && a.cpuset == b.cpuset && a.quota_cpus == b.quota_cpus &&
           a.usable == b.usable;
}

}  // namespace

AllowanceWatch::AllowanceWatch(Machine machine) : machine_(std::move(machine)) {
    if (machine_.synthetic()) {
        current_ = allowance(machine_);
        return;
    }
    current_.affinity = thread_affinity();
    notify_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    // Watched before they are read for good, so that no write falls in between.
    watch_sources(read_cgroup_limits(SystemFiles{}).sources);
    (void)refresh();
}

AllowanceWatch::~AllowanceWatch() {
    if (notify_ >= 0) ::close(notify_);
}

void AllowanceWatch::watch_sources(const std::vector<std::string>& sources) {
    if (notify_ < 0) return;
    std::erase_if(watched_, [&](const auto& entry) {
        if (std::ranges::find(sources, entry.first) != sources.end()) return false;
        inotify_rm_watch(notify_, entry.second);
        return true;
    });
    for (const std::string& path : sources) {
        if (watched_.contains(path)) continue;
        const int number = inotify_add_watch(notify_, path.c_str(), IN_MODIFY);
        if (number >= 0) watched_.emplace(path, number);
    }
}

bool AllowanceWatch::refresh() {
    if (machine_.synthetic()) return false;
    alignas(inotify_event) std::array<char, 4096> events;
    while (notify_ >= 0 && ::read(notify_, events.data(), events.size()) > 0) continue;
    const CgroupLimits limits = read_cgroup_limits(SystemFiles{});
    // For want of descriptors, say: it stays as it is, until the caller looks again.
    if (!limits.is_whole && was_whole_) return false;
    was_whole_ = limits.is_whole;
    watch_sources(limits.sources);
    CpuAllowance now = combine(machine_, thread_affinity(), limits);
    const bool changed = !same(now, current_);
    current_ = std::move(now);
    return changed;
}

}  // namespace heddle
