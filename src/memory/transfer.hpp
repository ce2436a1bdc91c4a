// Transfer: bytes that are to move between a segment and a cache, or within a cache. The state machines ask
// for it; the server does it, outside of its lock, and says when it has ended.
#pragma once

#include <span>

#include "heddle/memory_types.hpp"

namespace heddle::memory {

struct Transfer {
    enum class Direction {
        kFromSegment,
        kToSegment,
        kWithinCache,  ///< from each part's `memory` on to `copy`
    };
    struct Part {
        SegmentId segment;
        Rank rank = 0;
        uint64_t part_offset = 0;
        std::byte* memory = nullptr;
        uint64_t size = 0;
    };
    uint64_t access = 0;
    Direction direction = Direction::kFromSegment;
    /// Of the access, which stays until the transfer has ended.
    std::span<const Part> parts;
    std::byte* copy = nullptr;
    /// Of the operation that it was begun for; 0: it has left.
    uint64_t ticket = 0;
};

}  // namespace heddle::memory
