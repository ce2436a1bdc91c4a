// From series to figures, and the two forms in which they are shown: a table for people, JSON as DESIGN says.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks.hpp"
#include "interleave.hpp"

namespace heddle::bench {

/// What heddle reached against one peer. A ratio below 1 means that heddle is faster or smaller.
struct Result {
    std::string name;
    int n = 0;
    double median = 0;
    double mad = 0;
    std::string unit;
    std::string peer;
    double ratio = 0;
    double limit = 0;  ///< of the ratio; 0: none was set
};

/// The claim held against the series, one of which is heddle's; nothing where heddle or every peer has none.
[[nodiscard]] std::optional<Result> judge(const Claim& claim, const std::vector<Series>& all);

/// Who was measured and then failed, a line each: figures of theirs are of fewer runs than were asked for.
[[nodiscard]] std::vector<std::string> failures(const std::vector<Series>& all);

/// [{"name","n","median","mad","unit","peer","ratio"}]
[[nodiscard]] nlohmann::ordered_json results_json(const std::vector<Result>& results);

/// One line a peer and one a claim.
[[nodiscard]] std::string table(const Benchmark& benchmark, const std::vector<Series>& all,
                                const std::vector<Result>& results, double others_share);
/// A line of the table for a result alone.
[[nodiscard]] std::string line(const Result& result);

}  // namespace heddle::bench
