#include "arbiter/cpuset_fence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <utility>
#include <vector>

#include "base/failpoint.h"

namespace heddle {
namespace {

constexpr int kRounds = 64;  // of moving out what was there: who forks all the time is not waited for
constexpr int kDeepest = 32;
constexpr int kMostFolders = 10'000;  // that a search looks into

std::vector<std::string> words_of(const std::optional<std::string>& text) {
    std::istringstream stream(text.value_or(""));
    return {std::istream_iterator<std::string>(stream), {}};
}

std::string parent_of(const std::string& folder) {
    return folder.substr(0, folder.rfind('/'));
}

std::string_view name_of(const std::string& folder) {
    return std::string_view(folder).substr(folder.rfind('/') + 1);
}

/// Threads in v2, whose list of processes cannot be read in a threaded group; the kernel takes any thread for
/// its process.
std::vector<std::string> members_of(const Os& os, const std::string& folder, bool unified) {
    return words_of(os.read(folder + (unified ? "/cgroup.threads" : "/cgroup.procs")));
}

bool has_cpuset(const Os& os, const std::string& folder, const char* file) {
    const auto controllers = words_of(os.read(folder + file));
    return std::ranges::find(controllers, "cpuset") != controllers.end();
}

std::string because(const std::string& what, int failure) {
    return fmt::format("{}: {}", what, std::strerror(-failure));
}

}  // namespace

CpusetFence::CpusetFence(Os& os, std::string tag) : os_(os), tag_(std::move(tag)) {}

CpusetFence::~CpusetFence() {
    for (const auto& [process, fence] : held_) remove_for_good(fence);
    retry_removing();
}

std::string CpusetFence::prefix() const {
    return kFenceGroup + tag_ + "-";
}

bool CpusetFence::is_ours(const std::string& folder) const {
    return name_of(folder).starts_with(prefix());
}

std::string CpusetFence::missing() const {
    if (tag_.empty()) return "it is off";
    const auto own = cpuset_group_of(os_, "self");
    if (!own) return "no cpuset hierarchy is mounted";
    if (!os_.may_write(own->folder)) return fmt::format("{} is not writable", own->folder);
    if (own->unified && !has_cpuset(os_, own->folder, "/cgroup.controllers"))
        return fmt::format("{} has no cpuset controller", own->folder);
    return "";
}

std::string CpusetFence::hold(pid_t process, const CpuSet& cpus) {
    if (tag_.empty()) return "it is off";
    if (const auto place = held_.find(process); place != held_.end()) {
        if (place->second.cpus == cpus) return "";
        std::string problem = set_cpus(place->second, cpus);
        if (problem.empty()) place->second.cpus = cpus;
        return problem;
    }
    retry_removing();
    const std::string pid = std::to_string(process);
    const auto group = cpuset_group_of(os_, pid);
    if (!group) return "no cpuset hierarchy is mounted";
    // Below a mount that shows only a part of the hierarchy a path may mean another group.
    const auto members = members_of(os_, group->folder, group->unified);
    if (std::ranges::find(members, pid) == members.end())
        return fmt::format("it is not to be found in {}", group->folder);
    // A process that a held one forked is to come back to where that came from.
    const std::string origin = is_ours(group->folder) ? parent_of(group->folder) : group->folder;
    const Fence fence{origin + "/" + prefix() + pid, origin, group->unified, cpus};
    // The way out of the group is one for the whole process.
    for (const std::string& thread : os_.folders_in("/proc/" + pid + "/task"))
        if (const auto of_thread = cpuset_group_of(os_, pid, thread); of_thread && *of_thread != *group)
            return "its threads are in groups of their own";
    std::string problem = make(fence);
    if (problem.empty()) problem = set_cpus(fence, cpus);
    if (problem.empty()) {
        HEDDLE_FAILPOINT(cpuset_is_set);
        const int moved = os_.write(fence.folder + "/cgroup.procs", pid);
        if (moved < 0) problem = because("cannot move it to " + fence.folder, moved);
    }
    if (!problem.empty()) {
        remove_for_good(fence);
        return problem;
    }
    HEDDLE_FAILPOINT(cpuset_holds);
    held_.emplace(process, fence);
    return "";
}

std::string CpusetFence::hold_again(pid_t process) const {
    const std::string& folder = held_.at(process).folder;
    const int moved = os_.write(folder + "/cgroup.procs", std::to_string(process));
    return moved < 0 ? because("cannot move it back to " + folder, moved) : "";
}

std::string CpusetFence::make(const Fence& fence) const {
    if (fence.unified && !has_cpuset(os_, fence.origin, "/cgroup.controllers"))
        return fmt::format("{} has no cpuset controller", fence.origin);
    if (const int made = os_.make_folder(fence.folder); made < 0 && made != -EEXIST)
        return because("cannot make " + fence.folder, made);
    HEDDLE_FAILPOINT(cpuset_is_made);
    if (fence.unified) {
        if (const int made = os_.write(fence.folder + "/cgroup.type", "threaded"); made < 0)
            return because("cannot make a threaded group below " + fence.origin, made);
        if (has_cpuset(os_, fence.origin, "/cgroup.subtree_control")) return "";
        const int given = os_.write(fence.origin + "/cgroup.subtree_control", "+cpuset");
        return given < 0 ? because("cannot give cpusets to groups below " + fence.origin, given) : "";
    }
    // A group within one that balances needs no domains of its own, which the kernel would build anew at each
    // change.
    if (os_.read(fence.origin + "/cpuset.sched_load_balance").value_or("").starts_with('1'))
        (void)os_.write(fence.folder + "/cpuset.sched_load_balance", "0");
    const std::string nodes = os_.read(fence.origin + "/cpuset.mems").value_or("");
    const int set = os_.write(fence.folder + "/cpuset.mems", nodes);
    return set < 0 ? because("cannot set the memory nodes of " + fence.folder, set) : "";
}

std::string CpusetFence::set_cpus(const Fence& fence, const CpuSet& cpus) const {
    const int set = os_.write(fence.folder + "/cpuset.cpus", cpus.to_list());
    return set < 0 ? because("cannot set the CPUs of " + fence.folder, set) : "";
}

bool CpusetFence::remove(const Fence& fence) const {
    for (int round = 0; round < kRounds; ++round) {
        const auto members = members_of(os_, fence.folder, fence.unified);
        if (members.empty()) break;
        for (const std::string& member : members)
            (void)os_.write(fence.origin + "/cgroup.procs", member);  // or it died meanwhile
    }
    HEDDLE_FAILPOINT(cpuset_lets_go);
    const int removed = os_.remove_folder(fence.folder);
    if (removed < 0 && removed != -ENOENT) return false;
    // The last one switches off what the first one switched on.
    if (fence.unified && os_.folders_in(fence.origin).empty())
        (void)os_.write(fence.origin + "/cgroup.subtree_control", "-cpuset");
    return true;
}

void CpusetFence::remove_for_good(const Fence& fence) {
    if (!remove(fence)) emptying_.push_back(fence);
}

void CpusetFence::retry_removing() {
    std::erase_if(emptying_, [this](const Fence& fence) { return remove(fence); });
}

void CpusetFence::let_go(pid_t process) {
    retry_removing();
    if (const auto place = held_.extract(process)) remove_for_good(place.mapped());
}

void CpusetFence::admit(pid_t process) {
    if (held_.empty() || holds(process)) return;
    const auto group = cpuset_group_of(os_, std::to_string(process));
    if (group && is_ours(group->folder))
        (void)os_.write(parent_of(group->folder) + "/cgroup.procs", std::to_string(process));
}

void CpusetFence::remove_leftovers() {
    // Wherever our own group is: clients may be in groups where it is otherwise.
    const auto own = cpuset_group_of(os_, "self");
    if (tag_.empty() || !own) return;
    int budget = kMostFolders;
    remove_leftovers_below(own->top, own->unified, 0, budget);
}

void CpusetFence::remove_leftovers_below(const std::string& folder, bool unified, int depth, int& budget) {
    if (depth > kDeepest) return;
    for (const std::string& name : os_.folders_in(folder)) {
        if (--budget < 0) return;
        const std::string below = folder + "/" + name;
        if (!is_ours(below))
            remove_leftovers_below(below, unified, depth + 1, budget);
        else if (os_.may_write(folder))
            remove_for_good({below, folder, unified, {}});
    }
}

}  // namespace heddle
