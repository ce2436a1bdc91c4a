// ThreadPlaces: which of a driver's threads stand for which sets of CPUs. PoCL's sub-devices are ranges of
// the threads of its pool; heddle binds those of a range to the CPUs that the program asked for. No locks.
#pragma once

#include <optional>
#include <vector>

#include "heddle/cpu_set.hpp"

namespace heddle::opencl {

/// Threads first .. first + count - 1.
struct ThreadRange {
    int first = 0;
    int count = 0;
    bool operator==(const ThreadRange&) const = default;
};

class ThreadPlaces {
  public:
    /// The device's threads, and the CPUs that this process may use.
    ThreadPlaces(int threads, CpuSet cpus);
    /// As many threads as CPUs, for a set of these. Thread i is taken for the i-th CPU where that can be;
    /// another set's threads are shared only where one of the sets is a part of the other. None: there are
    /// not as many free ones in a row.
    [[nodiscard]] std::optional<ThreadRange> claim(const CpuSet& cpus);
    void release(const ThreadRange& range, const CpuSet& cpus);
    /// Where a thread is to be bound: the CPUs that all who have claimed it have in common; else all.
    [[nodiscard]] CpuSet cpus_of(int thread) const;

  private:
    struct Claim {
        ThreadRange range;
        CpuSet cpus;
        bool operator==(const Claim&) const = default;
    };
    [[nodiscard]] bool agrees(const ThreadRange& range, const CpuSet& cpus, bool may_share) const;

    const int threads_;
    const CpuSet cpus_;
    std::vector<Claim> claims_;
};

}  // namespace heddle::opencl
