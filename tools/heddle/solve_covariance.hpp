// heddle solve --covariance: a generated covariance matrix, factorised in compressed tiles on each engine.
//
// The part of `heddle solve` that no file is read for; one thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace heddle::tool {

struct CovarianceOptions {
    size_t points;
    double accuracy;
    std::vector<std::string> engines;
    size_t tile;  // 0: as suits
    int workers;  // 0: all CPUs
    bool json;
    bool quiet;  // no progress on a terminal
};

/// Prints what was measured. Throws kBadInput where the backward error is more than the accuracy.
void solve_covariance(const CovarianceOptions& options);

}  // namespace heddle::tool
