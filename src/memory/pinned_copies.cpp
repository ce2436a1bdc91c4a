#include "memory/pinned_copies.hpp"

#include "base/failpoint.h"
#include "base/full_fence.hpp"

namespace heddle::memory {

std::optional<uint32_t> PinnedCopies::free_slot() {
    if (!free_.empty()) return free_.back();
    const uint32_t reach = page_.reach.load(std::memory_order_relaxed);
    if (reach == kPins) return {};
    free_.push_back(reach);
    page_.reach.store(reach + 1, std::memory_order_release);
    return reach;
}

std::optional<PinnedCopies::Pinned> PinnedCopies::get(const GlobalRange& global) {
    const uint32_t first = first_listing(global, static_cast<uint32_t>(listings_.size()));
    for (uint32_t which = first; which < first + kListingsOfOne; ++which) {
        const CopyListing& one = listings_[which];
        const uint64_t turn = one.turn.load(std::memory_order_acquire);
        if (turn % 2 == 0 || one.data.load(std::memory_order_relaxed) != global.data.value ||
            one.offset.load(std::memory_order_relaxed) != global.range.offset ||
            one.size.load(std::memory_order_relaxed) != global.range.size)
            continue;
        const uint64_t place = one.place.load(std::memory_order_relaxed);
        const std::optional<uint32_t> slot = free_slot();
        if (!slot) return {};
        page_.pins[*slot].store(pin_of(which, turn), std::memory_order_release);
        HEDDLE_FAILPOINT(memory_is_pinning);
        full_fence();
        if (one.turn.load(std::memory_order_relaxed) != turn) {
            page_.pins[*slot].store(kNoPin, std::memory_order_release);
            return {};
        }
        HEDDLE_FAILPOINT(memory_has_pinned);
        free_.pop_back();
        page_.hits.store(page_.hits.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        if (page_.used[which].load(std::memory_order_relaxed) == 0)
            page_.used[which].store(1, std::memory_order_relaxed);
        return Pinned{uint64_t{++uses_[*slot]} << 32u | kMark | *slot, place};
    }
    return {};
}

std::optional<uint32_t> PinnedCopies::slot_of(uint64_t id) const {
    const uint32_t slot = static_cast<uint32_t>(id) & ~static_cast<uint32_t>(kMark);
    if (!is_pinned(id) || slot >= kPins || uses_[slot] != id >> 32u || pin_at(slot) == kNoPin) return {};
    return slot;
}

Pin PinnedCopies::pin(uint64_t id) const {
    const std::optional<uint32_t> slot = slot_of(id);
    return slot ? pin_at(*slot) : kNoPin;
}

bool PinnedCopies::release(uint64_t id) {
    const std::optional<uint32_t> slot = slot_of(id);
    if (!slot) return false;
    page_.pins[*slot].store(kNoPin, std::memory_order_release);
    free_.push_back(*slot);
    return true;
}

}  // namespace heddle::memory
