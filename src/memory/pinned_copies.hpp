// PinnedCopies: the client's side of CopyListings: copies of one cache that are used without a message.
//
// One thread at a time. When its process ends the server sees that, and what was pinned is not any more.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "memory/copy_listings.hpp"

namespace heddle::memory {

class PinnedCopies {
  public:
    /// `page` is zero, and nobody else's.
    PinnedCopies(std::span<const CopyListing> listings, PinPage& page) : listings_(listings), page_(page) {}

    struct Pinned {
        uint64_t id = 0;     ///< of a local range
        uint64_t place = 0;  ///< of its first byte in the cache
    };
    /// A copy of exactly that range, which stays until it is released. Nothing: there is none that could be
    /// had so; the server is to be asked.
    [[nodiscard]] std::optional<Pinned> get(const GlobalRange& global);
    /// False: it is none that get() has given, or was released.
    bool release(uint64_t id);
    /// kNoPin: as release().
    [[nodiscard]] Pin pin(uint64_t id) const;

    /// Whether get() gave that number to a local range. A server gives no such.
    [[nodiscard]] static bool is_pinned(uint64_t id) { return (id & kMark) != 0; }

  private:
    static constexpr uint64_t kMark = 1u << 31u;

    [[nodiscard]] std::optional<uint32_t> free_slot();
    [[nodiscard]] std::optional<uint32_t> slot_of(uint64_t id) const;
    [[nodiscard]] Pin pin_at(uint32_t slot) const { return page_.pins[slot].load(std::memory_order_relaxed); }

    std::span<const CopyListing> listings_;
    PinPage& page_;
    /// How often each was used: what was released is told from what was not.
    std::array<uint32_t, kPins> uses_{};
    std::vector<uint32_t> free_;
};

}  // namespace heddle::memory
