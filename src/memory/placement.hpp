// Placement: how an allocation is spread, as it is told to all ranks.
//
// A description with a function of the program's is made one by the process that allocates: the others need
// not know the function, and cannot get another answer.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "memory/distribution.hpp"

namespace heddle::memory {

struct Placement {
    /// One that all ranks know, or the name of what chose the shares, for messages.
    std::string distribution = {};
    bool by_shares = false;
    std::vector<Share> shares = {};
};

/// Allocates by `server`, which has free_bytes(segment) and allocate(size, segment, placement). Throws as
/// Client::allocate.
template <class Server>
DataId allocate_as_described(Server& server, uint64_t size, SegmentId segment,
                             const DataDescription& description) {
    const bool known = is_known_on_all_ranks(description.distribution);
    if (known && !description.distribute) return server.allocate(size, segment, {description.distribution});
    const Distribution distribution =
        description.distribute ? description.distribute : find_distribution(description.distribution);
    Placement placement{known ? "of this call" : description.distribution, true};
    while (true) {
        const std::vector<uint64_t> room = server.free_bytes(segment);
        // Called only where there is so much in all; else the ranks say that there is not.
        if (size <= std::accumulate(room.begin(), room.end(), uint64_t{0}))
            placement.shares = distribution(size, room);
        try {
            return server.allocate(size, segment, placement);
        } catch (const MemoryError& error) {
            // Another allocation may have taken what was free when the shares were chosen.
            if (error.memory_code() != MemoryErrorCode::kSegmentFull || server.free_bytes(segment) == room)
                throw;
        }
    }
}

}  // namespace heddle::memory
