// Survey: what ranks answer when they are asked what transfers would cost them, and what of some ranges they
// have copies of. Nothing is moved, and nothing waits: an answer is of the moment.
//
// Plain values.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/memory_types.hpp"

namespace heddle::memory {

/// The part of an operation that moves bytes.
struct PlannedTransfer {
    uint64_t data = 0, offset = 0, size = 0;
    /// Where a copy would be of use; 0: in any.
    uint64_t cache = 0;
    bool writes = false;
    /// A copy that is there is of no use.
    bool anew = false;
    bool prefer_direct = false;

    [[nodiscard]] GlobalRange range() const { return {{data}, {offset, size}}; }
};

/// To a rank: what would they cost you?
struct SurveyRequest {
    uint64_t number = 0;
    std::vector<PlannedTransfer> transfers;
};
struct SurveyReply {
    uint64_t number = 0;
    /// All together.
    double seconds = 0;
    /// Those, by their places in the request, of which there are copies of some bytes.
    std::vector<uint32_t> copies;
};
/// What fits into a packet between ranks, and into one of a client.
constexpr size_t kMostInSurvey = 400;

/// Of those that move bytes.
[[nodiscard]] std::vector<PlannedTransfer> planned_transfers(std::span<const Operation> operations);
/// To get each range.
[[nodiscard]] std::vector<PlannedTransfer> planned_transfers(std::span<const GlobalRange> ranges);

/// As clients in other processes get them.
[[nodiscard]] std::string text_of(const std::vector<DataLocality>& localities);
/// Throws kSystem for what text_of() has not made.
[[nodiscard]] std::vector<DataLocality> localities_in(const std::string& text);

}  // namespace heddle::memory
