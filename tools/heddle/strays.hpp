// Programs that run where another one should: seen from their threads, not from what they say.
//
// A program that says that it left a CPU, and never did, is fenced by nobody: the arbiter looks only at those
// that miss the deadline (docs/ARBITER.md, Fences). So is one whose threads were never bound. Whoever asks
// for the status is told of both.
#pragma once

#include <map>

#include "cores/observer.hpp"

namespace heddle::tool {

/// Of each client that does so, the CPUs of others on which threads of its process ran at each of three
/// looks, 5 ms apart. Takes these 10 ms where more than one process holds CPUs, else nothing. A program
/// without any runs where the system puts it, which is no offence. Not told: what /proc does not show of
/// other users' processes, and on a machine that is described and not real.
[[nodiscard]] std::map<uint32_t, CpuSet> strays(const ArbiterSnapshot& status);

}  // namespace heddle::tool
