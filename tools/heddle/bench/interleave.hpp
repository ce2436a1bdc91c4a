// Runs several contestants in turn, A B C B C A C A B, so that what disturbs the machine for a while disturbs
// all of them, and none always follows the same one.
//
// A run is cut when it takes many times the best contestant's median: it will not be the best, and a
// runtime that spins for minutes would eat the hour. A contestant that throws is skipped with its reason.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "statistics.hpp"

namespace heddle::bench {

/// Once so many runs of a contestant were cut, and no other kind was seen, it has shown what it is.
inline constexpr int kCutsThatSuffice = 5;

struct Contestant {
    std::string name;
    double cut_factor = 5;  ///< a run is cut at this many times the best median
    /// Runs once and ends the run at `cut_s` seconds.
    std::function<Sample(double cut_s)> run;
};

struct Series {
    std::string name;
    std::vector<Sample> samples;
    std::string skipped;  ///< why it has no (more) samples; "" otherwise
};

struct Schedule {
    int runs = 11;
    double longest_s = 60;  ///< cut while there is nothing to compare with
    /// Called before each run with its contestant and how many rounds are done.
    std::function<void(const std::string& contestant, int round)> progress;
};

/// One series a contestant, in their order.
[[nodiscard]] std::vector<Series> interleave(const std::vector<Contestant>& contestants,
                                             const Schedule& schedule);

}  // namespace heddle::bench
