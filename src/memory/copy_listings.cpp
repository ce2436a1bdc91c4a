#include "memory/copy_listings.hpp"

#include <algorithm>
#include <bit>

#include "base/full_fence.hpp"

namespace heddle::memory {
namespace {

/// More of these than copies that a cache usually has; small caches of small ranges have the rest by
/// messages.
constexpr uint64_t kBytesOfOne = 32;

}  // namespace

uint32_t listings_of(uint64_t cache_size) {
    const uint64_t wanted = std::clamp<uint64_t>(cache_size / kBytesOfOne, kLeastListings, kMostListings);
    return static_cast<uint32_t>(std::bit_ceil(wanted));
}

uint32_t first_listing(const GlobalRange& global, uint32_t count) {
    uint64_t mixed = global.data.value;
    for (const uint64_t part : {global.range.offset, global.range.size}) {
        mixed = (mixed ^ part) * 0x9e3779b97f4a7c15u;
        mixed ^= mixed >> 32u;
    }
    return static_cast<uint32_t>(mixed) & (count - 1) & ~(kListingsOfOne - 1);
}

Pin CopyListings::list(const GlobalRange& global, uint64_t place) {
    const uint32_t first = first_listing(global, static_cast<uint32_t>(listings_.size()));
    for (uint32_t which = first; which < first + kListingsOfOne; ++which) {
        CopyListing& one = listings_[which];
        const uint64_t turn = one.turn.load(std::memory_order_relaxed);
        if (turn % 2 == 1) continue;
        one.data.store(global.data.value, std::memory_order_relaxed);
        one.offset.store(global.range.offset, std::memory_order_relaxed);
        one.size.store(global.range.size, std::memory_order_relaxed);
        one.place.store(place, std::memory_order_relaxed);
        one.turn.store(turn + 1, std::memory_order_release);
        return pin_of(which, turn + 1);
    }
    return kNoPin;
}

void CopyListings::unlist(Pin pin) {
    std::atomic<uint64_t>& turn = listings_[listing_of(pin)].turn;
    turn.store(turn.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    // Who does not see it has been seen by who looks for pins now; and what is listed here next is written
    // after it.
    full_fence();
}

uint32_t CopyListings::reach_of(const PinPage& page) {
    return std::min(page.reach.load(std::memory_order_acquire), kPins);
}

bool CopyListings::is_pinned(Pin pin) const {
    return std::ranges::any_of(pages_, [&](const PinPage* page) {
        const uint32_t reach = reach_of(*page);
        for (uint32_t i = 0; i < reach; ++i)
            if (page->pins[i].load(std::memory_order_acquire) == pin) return true;
        return false;
    });
}

bool CopyListings::take_use(Pin pin) {
    bool used = false;
    for (PinPage* const page : pages_) {
        std::atomic<uint8_t>& by_client = page->used[listing_of(pin)];
        if (by_client.load(std::memory_order_relaxed) == 0) continue;
        by_client.store(0, std::memory_order_relaxed);
        used = true;
    }
    return used;
}

void CopyListings::detach(PinPage& page) {
    hits_of_gone_ += page.hits.load(std::memory_order_relaxed);
    std::erase(pages_, &page);
}

uint64_t CopyListings::hits() const {
    uint64_t all = hits_of_gone_;
    for (const PinPage* const page : pages_) all += page->hits.load(std::memory_order_relaxed);
    return all;
}

std::vector<Pin> CopyListings::pins() const {
    std::vector<Pin> all;
    for (const PinPage* const page : pages_) {
        const uint32_t reach = reach_of(*page);
        for (uint32_t i = 0; i < reach; ++i)
            if (const Pin pin = page->pins[i].load(std::memory_order_acquire); pin != kNoPin)
                all.push_back(pin);
    }
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

}  // namespace heddle::memory
