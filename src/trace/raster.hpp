// Raster: histories brought down to the columns of a picture, so that its size depends on the picture and not
// on the number of events.
//
// Pure functions. What is wider than a column is shown as it was. Where several clients share one column,
// each column goes to one of those that were in it, and what the others miss is carried over to the next
// columns: the coloured area stays true to the core-seconds even where every single slice is too thin to see.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/timeline.hpp"

namespace heddle::trace {

/// Columns first..first+count-1 show this client. Idle columns are in no run.
struct Run {
    int first = 0;
    int count = 0;
    Who user = kNobody;
};

/// One row of the picture for one CPU, or for several at once. Runs are in order and neighbours differ.
[[nodiscard]] std::vector<Run> rasterize(std::span<const CpuHistory> cpus, int64_t end_ns, int columns);

/// The mean of a step function in each column.
[[nodiscard]] std::vector<double> column_means(const std::vector<Step>& steps, int64_t end_ns, int columns);

}  // namespace heddle::trace
