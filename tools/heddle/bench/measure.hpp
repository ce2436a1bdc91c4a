// One run of a benchmark's programs under one peer, from the common start to the later end.
#pragma once

#include <string_view>
#include <vector>

#include "benchmarks.hpp"
#include "host.hpp"
#include "interleave.hpp"
#include "machine_load.hpp"

namespace heddle::bench {

/// Makes what the benchmark's programs read (a picture). Throws kUnavailable where that is impossible.
void prepare(const Benchmark& benchmark, const Host& host);

/// Seconds from the common start (of a program that is started later: from that of the first) to the end of
/// the last. Throws kUnavailable where the peer or a program is missing or ends with an error.
[[nodiscard]] Sample run_once(const Benchmark& benchmark, std::string_view peer, const Host& host,
                              double cut_s, MachineLoad& load);

/// What makes the benchmark's contestants for interleave(): the peers wanted, and heddle.
[[nodiscard]] std::vector<Contestant> contestants(const Benchmark& benchmark,
                                                  const std::vector<std::string>& wanted, const Host& host,
                                                  MachineLoad& load);

}  // namespace heddle::bench
