#include "memory/local_ranges.hpp"

#include <fmt/format.h>

namespace heddle::memory {
namespace {

uint32_t slot_of(uint64_t id) {
    return static_cast<uint32_t>(id);
}
uint32_t generation_of(uint64_t id) {
    return static_cast<uint32_t>(id >> 32u);
}

}  // namespace

LocalRange LocalRanges::named(uint32_t slot, uint32_t generation, const HeldRange& held) {
    LocalRange local;
    local.cache = held.cache;
    local.id = uint64_t{generation} << 32u | slot;
    local.base = held.base;
    local.range = held.range;
    return local;
}

HeldRange& LocalRanges::add(uint64_t& id) {
    uint32_t slot;
    if (free_.empty()) {
        slot = static_cast<uint32_t>(slots_.size());
        // So that remove() needs no memory.
        if (free_.capacity() <= slots_.size()) free_.reserve(2 * slots_.size() + 8);
        slots_.emplace_back();
    } else {
        slot = free_.back();
        free_.pop_back();
    }
    slots_[slot].used = true;
    ++count_;
    id = uint64_t{slots_[slot].generation} << 32u | slot;
    return slots_[slot].held;
}

LocalRange LocalRanges::add(const HeldRange& held) {
    uint64_t id;
    add(id) = held;
    return named(slot_of(id), generation_of(id), held);
}

bool LocalRanges::has(const LocalRange& local) const noexcept {
    const uint32_t slot = slot_of(local.id);
    return slot < slots_.size() && slots_[slot].used && slots_[slot].generation == generation_of(local.id);
}

void check_part_of(const LocalRange& held, const LocalRange& named) {
    if (held.cache != named.cache)
        throw MemoryError(
            MemoryErrorCode::kUnknown,
            fmt::format("local range {:#x} is in cache {}, not in {}: only its range may be changed", held.id,
                        held.cache.value, named.cache.value));
    if (held.base != named.base)
        throw MemoryError(MemoryErrorCode::kUnknown,
                          fmt::format("local range {:#x} begins elsewhere in memory than its base says: only "
                                      "its range may be changed",
                                      held.id));
    if (!held.range.contains(named.range))
        throw MemoryError(
            MemoryErrorCode::kOutside,
            fmt::format("{} bytes from {} on are not all in local range {:#x}, which has {} from {} on",
                        named.range.size, named.range.offset, held.id, held.range.size, held.range.offset));
}

HeldRange& LocalRanges::find(const LocalRange& local, ClientId client) {
    const uint32_t slot = slot_of(local.id);
    if (!has(local) || slots_[slot].held.client != client)
        throw MemoryError(
            MemoryErrorCode::kUnknown,
            fmt::format("local range {:#x} is not held by this client: it was released, or is not "
                        "one that an operation returned",
                        local.id));
    HeldRange& held = slots_[slot].held;
    if (held.leaves)
        throw MemoryError(
            MemoryErrorCode::kUnknown,
            fmt::format("local range {:#x} is not held any more, unless the put that is to release it fails",
                        local.id));
    check_part_of({held.cache, local.id, held.base, held.range}, local);
    return held;
}

HeldRange& LocalRanges::at(const LocalRange& local) noexcept {
    return slots_[slot_of(local.id)].held;
}

void LocalRanges::remove(const LocalRange& local) {
    const uint32_t slot = slot_of(local.id);
    slots_[slot].used = false;
    --count_;
    // A slot whose numbers are used up rests for ever.
    if (++slots_[slot].generation != 0) free_.push_back(slot);
}

std::optional<LocalRange> LocalRanges::held_at(size_t place, ClientId client) const {
    const Slot& slot = slots_[place];
    if (!slot.used || slot.held.client != client) return {};
    return named(static_cast<uint32_t>(place), slot.generation, slot.held);
}

}  // namespace heddle::memory
