// Median, MAD and bounds: how a series of runs becomes a figure.
//
// Pure functions of their arguments. A run that was cut short is kept as a lower bound, so that a peer that
// hangs has a figure too, and one that says it is only a bound.
#pragma once

#include <vector>

namespace heddle::bench {

struct Sample {
    double value = 0;
    bool cut = false;  ///< the run was ended at `value`; it would have taken longer
};

struct Summary {
    int n = 0;
    double median = 0;
    double mad = 0;         ///< median of the distances to the median
    bool at_least = false;  ///< the median is a lower bound, since it rests on a run that was cut
};

/// Of an empty series: 0. The mean of the middle two where the count is even.
[[nodiscard]] double median(std::vector<double> values);
[[nodiscard]] double median_absolute_deviation(const std::vector<double>& values);
[[nodiscard]] Summary summarize(const std::vector<Sample>& samples);

/// What heddle adds, run by run: ours[i] - theirs[i] as far as both go. Neighbours in time share their
/// disturbances, so this sees less noise than the difference of two medians.
[[nodiscard]] std::vector<Sample> differences(const std::vector<Sample>& ours,
                                              const std::vector<Sample>& theirs);

}  // namespace heddle::bench
