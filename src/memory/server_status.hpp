// ServerStatus: what one server has at a moment, for `heddle memory status`.
#pragma once

#include <vector>

#include "heddle/memory_types.hpp"

namespace heddle::memory {

struct ServerStatus {
    struct SegmentRoom {
        SegmentId id;
        uint64_t free_bytes = 0;  ///< on all ranks
    };
    struct CacheState {
        CacheId id;
        bool shareable = false;
        size_t clients = 0;  ///< of other processes
        size_t in_use = 0;   ///< pieces of it that somebody uses
    };
    Counters counters;
    Rank ranks = 1;
    Inventory inventory;
    std::vector<SegmentRoom> room;
    std::vector<CacheState> caches;
    size_t local_ranges = 0;  ///< held by all clients
    size_t operations = 0;    ///< under way, and ranges held exclusively
};

}  // namespace heddle::memory
