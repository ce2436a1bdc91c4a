// Segments as people describe them on a command line.
#pragma once

#include <string>

#include "heddle/memory.hpp"

namespace heddle::tool {

/// KIND[,OPTION=VALUE]... Throws UsageError.
[[nodiscard]] memory::SegmentDescription segment_description(const std::string& text);

struct WantedSegment {
    uint64_t size = 0;
    memory::SegmentDescription description;
};
/// KIND,SIZE[,OPTION=VALUE]... Throws UsageError.
[[nodiscard]] WantedSegment wanted_segment(const std::string& text);

}  // namespace heddle::tool
