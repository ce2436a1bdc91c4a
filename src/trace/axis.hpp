// Axis: round ticks on a time axis, with units.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::trace {

struct Tick {
    int64_t at_ns = 0;
    std::string label;
};

/// Ticks from 0 to end, at most `most` of them (at least two), one, two or five times a power of ten apart,
/// or a round number of minutes, hours or days. All labels have the same unit: "0", "250 ms", "500 ms".
[[nodiscard]] std::vector<Tick> ticks(int64_t end_ns, int most);

/// A length of time with three digits: "812 µs", "10.4 s", "12 min 5 s".
[[nodiscard]] std::string duration(int64_t ns);

}  // namespace heddle::trace
