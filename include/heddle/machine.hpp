// Machine: the CPUs of a computer and how near they are to each other.
//
// A cheap value (a shared pointer to constant data): copy it, read it from any thread. Built from hwloc, from
// a synthetic description or from a recorded XML file, so that a laptop can arbitrate a 256-core machine.
// Source of the placement rule: seed 002 section 4 (fill the hardware threads of a core, then the cores of a
// package, then the next).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/cpu_set.hpp"
#include "heddle/export.hpp"

namespace heddle {

/// Where one CPU (hardware thread) sits. Core, package and numa are indices that are dense, from 0, over the
/// machine.
struct CpuPlace {
    int cpu = -1;      ///< operating-system index
    int core = -1;     ///< SMT siblings share it
    int package = -1;  ///< socket
    int numa = -1;     ///< NUMA node
};

class HEDDLE_API Machine {
  public:
    /// The machine this process runs on, as it was at the first call, or what HEDDLE_TOPOLOGY says in its
    /// place: a synthetic description, or "xml:PATH" for a recorded one. Throws kBadInput where that does not
    /// parse, kSystem where hwloc fails.
    [[nodiscard]] static Machine detect();
    /// From hwloc's synthetic form, e.g. "numa:2 core:64 pu:2". Throws kBadInput.
    [[nodiscard]] static Machine synthetic(std::string_view description);
    /// From hwloc's XML (lstopo file.xml). Throws kBadInput.
    [[nodiscard]] static Machine from_xml(const std::string& path);

    /// All CPUs of the machine, whether this process may use them or not.
    [[nodiscard]] const CpuSet& cpus() const noexcept;
    /// The places of all CPUs, by ascending CPU.
    [[nodiscard]] const std::vector<CpuPlace>& places() const noexcept;
    /// Throws kInvalidArgument for a CPU the machine does not have.
    [[nodiscard]] const CpuPlace& place(int cpu) const;
    [[nodiscard]] int core_count() const noexcept;
    [[nodiscard]] int package_count() const noexcept;
    [[nodiscard]] int numa_count() const noexcept;
    /// True where the machine is described, not real: nothing may then be bound to its CPUs.
    [[nodiscard]] bool synthetic() const noexcept;
    /// The topology in one line, e.g. "2 packages, 2 NUMA nodes, 64 cores, 128 CPUs".
    [[nodiscard]] std::string summary() const;

    /// 0 the same CPU, 1 the same core, 2 the same NUMA node, 3 the same package, 4 farther. Both must exist.
    [[nodiscard]] int distance(int a, int b) const;
    /// Up to `count` CPUs of `from`, those nearest to any CPU of `anchor` first. Among equally near ones, and
    /// with an empty anchor, the choice is the most compact: few packages, few NUMA nodes, few cores, and of
    /// the places where the rest fits the one with the least room. Cores that are wholly in `from` come
    /// first. Deterministic; ties go to the lower core and CPU. CPUs that the machine does not have are
    /// ignored.
    [[nodiscard]] CpuSet nearest(const CpuSet& anchor, const CpuSet& from, int count) const;

    struct Data;

  private:
    explicit Machine(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
    std::shared_ptr<const Data> data_;
};

/// What the system lets this process use, and why it is less than the machine.
struct CpuAllowance {
    CpuSet affinity;  ///< sched_getaffinity of the calling thread; in a task or kernel of heddle's, which
                      ///< binds it, of who made the Runtime or Offload; while an arbiter keeps the process
                      ///< off CPUs, of the thread that made it known to the arbiter, then
    CpuSet cpuset;    ///< the cgroup's cpuset (v1 or v2), or all CPUs where there is none
    double quota_cpus = 0;  ///< the cgroup's CPU quota in CPUs, or 0 where there is none
    /// affinity ∩ cpuset, never empty; with a quota ceil(quota) CPUs of it, compactly: for each group with a
    /// quota the same ones, and others for another
    CpuSet usable;
};

/// Reads affinity, cgroup cpuset and CPU quota (cgroup v1 and v2, own group and its ancestors). On a
/// synthetic machine everything is allowed. Call it again when the limits may have changed: it caches
/// nothing. Throws kSystem.
[[nodiscard]] HEDDLE_API CpuAllowance allowance(const Machine& machine);

}  // namespace heddle
