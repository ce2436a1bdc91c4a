// Distributions: how many bytes of an allocation each rank gets (seed 001 section 4.2.1, data descriptions).
//
// A distribution is one function of the size and of what is free on each rank. All ranks call it with the
// same arguments and must get the same answer. Register one under a name to add it; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/memory_types.hpp"

namespace heddle::memory {

struct Share {
    Rank rank = 0;
    uint64_t size = 0;
};

/// The shares in the order in which they make up the data, in all `size` bytes, none more than is free on its
/// rank. It is called only where so much is free in all.
using Distribution = std::vector<Share> (*)(uint64_t size, std::span<const uint64_t> free_bytes);

/// On each rank the same, give or take a byte, as far as there is room.
[[nodiscard]] std::vector<Share> equally_distributed(uint64_t size, std::span<const uint64_t> free_bytes);
/// All on the first rank, and on the next what did not fit there.
[[nodiscard]] std::vector<Share> prefix_filled(uint64_t size, std::span<const uint64_t> free_bytes);

/// Throws kInvalidArgument where the name is taken by another one.
void register_distribution(const std::string& name, Distribution distribution);
/// Throws kInvalidArgument with the names that there are.
[[nodiscard]] Distribution find_distribution(const std::string& name);

}  // namespace heddle::memory
