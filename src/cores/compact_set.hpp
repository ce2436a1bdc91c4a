// compact_set: where the workers of a process should sit so that as little of the machine as possible is
// awake (seed 002 section 4).
//
// Pure functions; any thread. Machine::nearest says where one more worker goes; this says whether those that
// run already should move, after some of them have ended and left holes.
#pragma once

#include <compare>

#include "heddle/cpu_set.hpp"
#include "heddle/machine.hpp"

namespace heddle {

/// How much of the machine a set of CPUs keeps awake; the first difference decides.
struct Extent {
    int packages = 0;
    int numa_nodes = 0;
    int cores = 0;
    friend auto operator<=>(const Extent&, const Extent&) = default;
};

/// CPUs that the machine does not have count nothing.
[[nodiscard]] Extent extent(const Machine& machine, const CpuSet& cpus);

/// As many CPUs of `available` as `used` has, with the smallest extent found, and of those sets the one that
/// moves the fewest workers. It is `used` itself unless another set has a smaller extent. `available` has to
/// contain `used`.
[[nodiscard]] CpuSet compact_set(const Machine& machine, const CpuSet& used, const CpuSet& available);

}  // namespace heddle
