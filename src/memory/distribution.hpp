// Distributions: how many bytes of an allocation each rank gets (seed 001 section 4.2.1, data descriptions).
//
// The two that heddle has itself are known on all ranks, which call them with the same arguments and get the
// same answer. One that a user has registered, or passed to the call, is called on the rank that allocates,
// and its shares go to all. Any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/memory.hpp"

namespace heddle::memory {

/// On each rank the same, give or take a byte, as far as there is room.
[[nodiscard]] std::vector<Share> equally_distributed(uint64_t size, std::span<const uint64_t> free_bytes);
/// All on the first rank, and on the next what did not fit there.
[[nodiscard]] std::vector<Share> prefix_filled(uint64_t size, std::span<const uint64_t> free_bytes);

[[nodiscard]] bool is_known_on_all_ranks(const std::string& distribution);
/// Throws kInvalidArgument with the names that there are.
[[nodiscard]] Distribution find_distribution(const std::string& name);

/// Throws kInvalidArgument where the shares do not make up `size` bytes on `ranks` ranks. `name` is for the
/// message.
void check_shares(const std::vector<Share>& shares, uint64_t size, size_t ranks, const std::string& name);

}  // namespace heddle::memory
