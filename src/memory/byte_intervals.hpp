// Ranges of bytes as intervals of Boost.ICL, for its sets and maps.
#pragma once

#include <boost/icl/interval_set.hpp>

#include "heddle/memory_types.hpp"

namespace heddle::memory {

using ByteInterval = boost::icl::right_open_interval<uint64_t>;
/// Of one allocation.
using ByteSet = boost::icl::interval_set<uint64_t, std::less, ByteInterval>;

constexpr Range kAllBytes{0, UINT64_MAX};

[[nodiscard]] inline ByteInterval interval_of(const Range& range) {
    return {range.offset, range.end()};
}
[[nodiscard]] inline Range range_of(const ByteInterval& interval) {
    return {interval.lower(), interval.upper() - interval.lower()};
}

}  // namespace heddle::memory
