// CpusetFence: keeps processes on some CPUs by a cpuset control group, which they cannot undo.
//
// The server's, in its thread. Each process that is held gets a group of its own, a child of the very group
// that it is in, and nothing else about it changes: what limits its memory, its CPU time or its parents' goes
// on limiting it. With cgroup v1 that is a child in the cpuset hierarchy; with v2 a threaded child, which may
// stand below a group with processes in it. Moving a process waits for the kernel, some 15 ms; changing the
// CPUs of one that is held does not.
//
// Processes that a held one forks are in its group too. One that registers is put back by admit(), the others
// when the group goes. Whoever is held is put back at the end of this object's life. Where the arbiter was
// killed, the next one of the same `tag` puts them back: remove_leftovers().
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/os.hpp"
#include "heddle/cpu_set.hpp"
#include "topology/cgroup.hpp"

namespace heddle {

class CpusetFence {
  public:
    /// `tag` tells groups of this arbiter, and of those before it, from those of others. Empty: no fence.
    CpusetFence(Os& os, std::string tag);
    ~CpusetFence();
    CpusetFence(const CpusetFence&) = delete;
    CpusetFence& operator=(const CpusetFence&) = delete;

    /// Why there can be no such fence for a process in this process's own group, or "". Others may be in
    /// groups where it is otherwise.
    [[nodiscard]] std::string missing() const;
    /// Keeps all threads of the process, and those to come, on `cpus`, which are not empty. "" or why that
    /// cannot be; then the process is where it was before.
    [[nodiscard]] std::string hold(pid_t process, const CpuSet& cpus);
    /// One that is held, and has gone elsewhere.
    [[nodiscard]] std::string hold_again(pid_t process) const;
    [[nodiscard]] bool holds(pid_t process) const { return held_.contains(process); }
    /// Puts the process, if it lives, and those that it forked back where it came from.
    void let_go(pid_t process);
    /// The process is to be on its own, though one that is held may have forked it.
    void admit(pid_t process);
    /// Of an arbiter that was killed: puts back who is held, and removes the groups.
    void remove_leftovers();

  private:
    /// A group that holds somebody.
    struct Fence {
        std::string folder;
        std::string origin;  ///< the folder above, which its processes come from
        bool unified;
        CpuSet cpus;
    };

    [[nodiscard]] std::string prefix() const;
    [[nodiscard]] bool is_ours(const std::string& folder) const;
    [[nodiscard]] std::string make(const Fence& fence) const;
    [[nodiscard]] std::string set_cpus(const Fence& fence, const CpuSet& cpus) const;
    /// Moves out who is in and removes the group. False where it still has processes, as it may while they
    /// fork.
    [[nodiscard]] bool remove(const Fence& fence) const;
    void remove_for_good(const Fence& fence);
    /// Once more, those that could not be removed.
    void retry_removing();
    void remove_leftovers_below(const std::string& folder, bool unified, int depth, int& budget);

    Os& os_;
    std::string tag_;
    std::map<pid_t, Fence> held_;
    std::vector<Fence> emptying_;  // nobody's any more, and not removed yet
};

}  // namespace heddle
