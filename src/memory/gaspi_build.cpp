// heddle's plug-in for segments of kind gaspi, where somebody has built it.
#include <fmt/format.h>

#include "base/plug_ins.hpp"
#include "memory/segment_plug_in.hpp"

namespace heddle::memory {

const SegmentPlugIn& gaspi_plug_in() {
    static std::string reason;
    static const auto get = reinterpret_cast<const SegmentPlugIn* (*)()>(
        plug_in_function("libheddle-segment-gaspi.so", "heddle_segment",
                         "build GPI-2, which is under the GPL, and heddle with HEDDLE_GASPI=ON", reason));
    if (get == nullptr)
        throw Error(ErrorCode::kUnavailable, fmt::format("no GPI-2 for segments of kind gaspi: {}", reason));
    return *get();
}

}  // namespace heddle::memory
