// CopyListings: the valid copies in a cache, shown to clients of other processes; and how such a client uses
// one without a message (docs/MEMORY_CLIENTS.md, Hits without a message).
//
// Listings lie in memory that clients can only read, and their server alone writes them. Each client has a
// PinPage of its own for each cache, which it alone writes and the server takes as hostile: any number there
// only makes the server keep, for that client, a copy that exists. They are hazard pointers between
// processes:
//
//     client                                  server
//     finds a listing, with its turn          takes the listing back: the turn goes on by one
//     writes {listing, turn} into a pin       (fence)
//     (fence)                                 reads all pins: is one {listing, turn as it was}?
//     reads the turn again                    no: the bytes may go
//
// One of them sees the other. A client that finds another turn clears its pin and asks by a message. A turn
// is never used again, so that a pin that was left in the middle, for good, holds nothing but that one copy.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heddle/memory_types.hpp"

namespace heddle::memory {

struct alignas(64) CopyListing {
    /// Odd: what follows is a valid copy, and stays so while this does. The server writes it by release; a
    /// client reads it by acquire, so that the rest and the bytes of the copy are those of this turn.
    std::atomic<uint64_t> turn{0};
    /// Written while the turn is even.
    std::atomic<uint64_t> data{0}, offset{0}, size{0};
    /// Of its first byte in the cache.
    std::atomic<uint64_t> place{0};
};

/// A listing and its turn; never 0.
using Pin = uint64_t;
constexpr Pin kNoPin = 0;
constexpr uint32_t kMostListings = 1u << 16u, kLeastListings = 64, kPins = 1024;

[[nodiscard]] constexpr Pin pin_of(uint32_t listing, uint64_t turn) {
    return turn << 16u | listing;
}
[[nodiscard]] constexpr uint32_t listing_of(Pin pin) {
    return static_cast<uint32_t>(pin) & (kMostListings - 1);
}

/// One client writes it, by release, so that what it has read of a copy was read before its pin goes; its
/// server reads it by acquire, and clears `used`.
struct PinPage {
    /// No pin from here on was ever set.
    std::atomic<uint32_t> reach{0};
    std::atomic<uint64_t> hits{0};
    std::atomic<Pin> pins[kPins];
    /// Listings that were hit since the server has looked: nothing depends on it but what is evicted first.
    std::atomic<uint8_t> used[kMostListings];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint8_t>::is_always_lock_free);

/// How many a cache of that size has: a power of two.
[[nodiscard]] uint32_t listings_of(uint64_t cache_size);
/// The first of those where a copy of that range may be listed. They are kListingsOfOne, all within `count`.
[[nodiscard]] uint32_t first_listing(const GlobalRange& global, uint32_t count);
constexpr uint32_t kListingsOfOne = 8;

/// The server's side. One thread at a time.
class CopyListings {
  public:
    /// All zero, as many as listings_of() says.
    explicit CopyListings(std::span<CopyListing> listings) : listings_(listings) {}

    /// Shows the copy from now on; kNoPin: there is no listing for it.
    [[nodiscard]] Pin list(const GlobalRange& global, uint64_t place);
    /// No client begins to use it from now on.
    void unlist(Pin pin);
    /// A client may use it. After unlist(): where it is false it stays so.
    [[nodiscard]] bool is_pinned(Pin pin) const;
    /// Somebody has used it since this was asked last.
    [[nodiscard]] bool take_use(Pin pin);

    void attach(PinPage& page) { pages_.push_back(&page); }
    void detach(PinPage& page);
    /// Hits of all clients there have been.
    [[nodiscard]] uint64_t hits() const;
    /// Whatever clients have set, in ascending order.
    [[nodiscard]] std::vector<Pin> pins() const;

  private:
    [[nodiscard]] static uint32_t reach_of(const PinPage& page);

    std::span<CopyListing> listings_;
    std::vector<PinPage*> pages_;
    uint64_t hits_of_gone_ = 0;
};

}  // namespace heddle::memory
