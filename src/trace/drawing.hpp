// Drawings of a timeline for people: an SVG picture and a text for terminals. Both show the CPUs as rows,
// grouped by package and NUMA node, over one time axis, and below them the clients with their accounts.
//
// Functions without state. Their size is bounded by the picture, not by the number of events (see
// raster.hpp).
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "trace/timeline.hpp"

namespace heddle::trace {

struct SvgOptions {
    std::string title = {};  ///< empty: what is drawn
};

/// 1000 units wide, as high as it needs; readable on light and dark pages. Under 2 MB whatever the trace.
void draw_svg(const Timeline& timeline, std::ostream& out, const SvgOptions& options = {});

struct TextOptions {
    int width = 100;     ///< columns of the terminal, at least 40
    int max_rows = 64;   ///< of CPUs; on a larger machine a row stands for several of them
    bool ascii = false;  ///< letters in place of blocks
    bool color = false;  ///< with the terminal's colour sequences
};

void draw_text(const Timeline& timeline, std::ostream& out, const TextOptions& options = {});
/// The last part of draw_text alone: who used, lent and waited for how many core-seconds.
void draw_accounts(const Timeline& timeline, std::ostream& out, const TextOptions& options = {});

/// What tasks of each name took, a line a name: nothing where the trace has none.
void draw_work_accounts(const Timeline& timeline, std::ostream& out, const TextOptions& options = {});

/// "12 pieces of work were dropped: ..."
[[nodiscard]] std::string dropped_text(const Timeline& timeline);

/// CPUs first..first+count-1 of Timeline::cpus, drawn as one row.
struct Row {
    size_t first = 0;
    size_t count = 1;
    std::string label;  ///< "CPU 3", "CPU 0-3"
};

/// The rows of one NUMA node or package; the label is empty where the machine has only one.
struct RowGroup {
    std::string label;
    std::vector<Row> rows;
};

[[nodiscard]] std::vector<RowGroup> rows_of(const Timeline& timeline, size_t max_rows);

/// The clients that a drawing names: those with the most core-seconds used or waited for, at most `most`, in
/// the order of the timeline.
[[nodiscard]] std::vector<size_t> clients_to_name(const Timeline& timeline, size_t most);

}  // namespace heddle::trace
