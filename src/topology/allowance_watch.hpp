// AllowanceWatch: follows what the system lets this process use, without waking an idle process.
//
// Owned by one thread, the one whose affinity counts. The kernel announces, through the descriptor, that
// somebody wrote a cpuset or a quota of the process's groups or of their ancestors in this cgroup namespace.
// It does not announce: a changed affinity, a move of the process to another group, a write from outside the
// container (another cgroup namespace), a CPU taken offline. Those are seen by refresh(); a caller that is
// awake anyway (a worker that found work, a grant that came) calls it now and then, and an idle one need not.
//
// A forked child shares the descriptor and takes events away from its parent: make a new watch there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file_system.hpp"
#include "base/file_watch.hpp"
#include "heddle/machine.hpp"
#include "topology/cgroup.hpp"

namespace heddle {

/// The allowance that follows from an affinity and the limits of the groups.
[[nodiscard]] CpuAllowance combine(const Machine& machine, const CpuSet& affinity,
                                   const CgroupLimits& limits);

class AllowanceWatch {
  public:
    /// Throws kSystem where the affinity cannot be read. Where the system cannot watch files, fd() is -1 and
    /// refresh() works all the same.
    explicit AllowanceWatch(Machine machine);
    /// The same by other files, which outlive it.
    AllowanceWatch(Machine machine, const FileSystem& files);

    /// Readable (poll, epoll) when a limit may have changed; call refresh() then. -1 on a synthetic machine.
    [[nodiscard]] int fd() const noexcept { return files_ ? files_->fd() : -1; }
    [[nodiscard]] const CpuAllowance& current() const noexcept { return current_; }
    /// Reads everything again, about 50 us, and empties the descriptor. True where current() changed; where
    /// something that could be read cannot it stays as it is. Throws kSystem.
    [[nodiscard]] bool refresh();

  private:
    void watch(std::vector<std::string> sources);

    Machine machine_;
    const FileSystem& system_;
    std::optional<FileWatch> files_;    ///< of a machine that is real
    std::vector<std::string> sources_;  ///< what it watches
    CpuAllowance current_;
    bool was_whole_ = false;
};

}  // namespace heddle
