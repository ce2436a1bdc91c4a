// Runs the programs bench/cores_* and tasks_*, which measure one part of heddle each, and reads their
// figures.
//
// Such a program takes --quick or nothing, and prints one JSON object a line: name, n, median, mad, unit, and
// limit where it depends on the run, peer_median where there is a peer, and its name as peer where it is the
// best of several. The table of them is in benchmarks.cpp; only programs that tell a wanted figure run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "host.hpp"
#include "report.hpp"

namespace heddle::bench {

struct FigureResults {
    std::vector<Result> results;
    std::vector<std::string> complaints;  ///< a figure that no program printed, a program that failed
    std::vector<std::string> skipped;     ///< figures for which this machine lacks something, and what
};

/// The figures whose name `wanted` accepts.
[[nodiscard]] FigureResults run_figure_programs(const Host& host, bool quick,
                                                const std::function<bool(std::string_view)>& wanted);

/// What one program printed. Throws kBadInput for a line that is none of the above; figures that are not in
/// the table are left out. A line that says why its figure cannot be measured here, {"name","skipped"},
/// is one of those skipped.
[[nodiscard]] FigureResults read_figures(const std::string& output);

}  // namespace heddle::bench
