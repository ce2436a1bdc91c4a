#include "memory/cache.hpp"

#include <algorithm>
#include <iterator>

namespace heddle::memory {

Cache::Room Cache::reserve(uint64_t size, CacheEntry*& entry, std::vector<GlobalRange>& evicted) {
    if (size > space_.size()) return Room::kNever;
    std::optional<Range> place = space_.take(size);
    if (!place) {
        if (!make_room(size, evicted)) return Room::kFull;
        place = space_.take(size);
    }
    entry = &entries_.emplace_back();
    entry->self = std::prev(entries_.end());
    entry->place = *place;
    entry->pins = 1;
    ++pinned_;
    if (size > 0) by_place_.emplace(place->offset, entry);
    return Room::kFound;
}

void Cache::publish(CacheEntry& entry, const GlobalRange& global, CacheEntry::State state) {
    if (entry.state == CacheEntry::State::kPrivate) {
        by_range_.emplace(global, &entry);
        Copies& copies = copies_[global.data];
        copies.by_begin.emplace(global.range.offset, &entry);
        copies.longest = std::max(copies.longest, global.range.size);
    }
    entry.global = global;
    entry.state = state;
}

void Cache::withdraw(CacheEntry& entry) {
    const auto [first, last] = by_range_.equal_range(entry.global);
    by_range_.erase(std::find_if(first, last, [&](const auto& one) { return one.second == &entry; }));
    const auto copies = copies_.find(entry.global.data);
    const auto [begin, end] = copies->second.by_begin.equal_range(entry.global.range.offset);
    copies->second.by_begin.erase(
        std::find_if(begin, end, [&](const auto& one) { return one.second == &entry; }));
    if (copies->second.by_begin.empty()) copies_.erase(copies);
    entry.state = CacheEntry::State::kStale;
    entry.tag.reset();
    if (entry.pins == 0) remove(entry);
}

void Cache::take_over(CacheEntry& entry) {
    pin(entry);
    withdraw(entry);
    entry.state = CacheEntry::State::kPrivate;
}

CacheEntry* Cache::find(const GlobalRange& global) const {
    CacheEntry* under_way = nullptr;
    const auto [first, last] = by_range_.equal_range(global);
    for (auto one = first; one != last; ++one) {
        if (one->second->state == CacheEntry::State::kValid) return one->second;
        under_way = one->second;
    }
    CacheEntry* larger = nullptr;
    for_each_overlapping(global, [&](CacheEntry& entry) {
        if (entry.state == CacheEntry::State::kValid && entry.global.range.contains(global.range))
            larger = &entry;
    });
    return larger != nullptr ? larger : under_way;
}

std::vector<GlobalRange> Cache::copies() const {
    std::vector<GlobalRange> all;
    for (const auto& one : by_range_) all.push_back(one.first);
    return all;
}

void Cache::pin(CacheEntry& entry) {
    if (entry.pins++ > 0) return;
    ++pinned_;
    unpinned_.erase(unpinned_.iterator_to(entry));
}

void Cache::unpin(CacheEntry& entry) {
    if (--entry.pins > 0) return;
    --pinned_;
    if (entry.state != CacheEntry::State::kValid) return remove(entry);
    entry.last_use = ++uses_;
    unpinned_.push_back(entry);
}

void Cache::remove(CacheEntry& entry) {
    if (entry.is_linked()) unpinned_.erase(unpinned_.iterator_to(entry));
    if (entry.place.size > 0) by_place_.erase(entry.place.offset);
    space_.give_back(entry.place);
    entries_.erase(entry.self);
}

CacheEntry* Cache::evictable_from(uint64_t offset) const {
    const auto found = by_place_.find(offset);
    return found != by_place_.end() && found->second->pins == 0 ? found->second : nullptr;
}

CacheEntry* Cache::evictable_to(uint64_t offset) const {
    const auto after = by_place_.lower_bound(offset);
    if (after == by_place_.begin()) return nullptr;
    CacheEntry& before = *std::prev(after)->second;
    return before.place.end() == offset && before.pins == 0 ? &before : nullptr;
}

void Cache::take_in_holes(Range& window) const {
    if (const auto hole = space_.hole_to(window.offset)) window = {hole->offset, hole->size + window.size};
    if (const auto hole = space_.hole_from(window.end())) window.size += hole->size;
}

bool Cache::grow(Range& window) const {
    const CacheEntry* const before = evictable_to(window.offset);
    const CacheEntry* const after = evictable_from(window.end());
    if (before == nullptr && after == nullptr) return false;
    if (after == nullptr || (before != nullptr && before->last_use < after->last_use))
        window = {before->place.offset, before->place.size + window.size};
    else
        window.size += after->place.size;
    take_in_holes(window);
    return true;
}

bool Cache::make_room(uint64_t size, std::vector<GlobalRange>& evicted) {
    // From the least recently used one on: where its neighbourhood is in use, the next one's is looked at.
    std::vector<Range> too_small;
    for (const CacheEntry& oldest : unpinned_) {
        if (oldest.place.size == 0) continue;
        if (std::ranges::any_of(too_small, [&](const Range& seen) { return seen.contains(oldest.place); }))
            continue;
        Range window = oldest.place;
        take_in_holes(window);
        while (window.size < size && grow(window)) {
        }
        if (window.size < size) {
            too_small.push_back(window);
            continue;
        }
        for (auto one = by_place_.lower_bound(window.offset);
             one != by_place_.end() && one->first < window.end();) {
            CacheEntry& entry = *(one++)->second;
            evicted.push_back(entry.global);
            withdraw(entry);
        }
        return true;
    }
    return false;
}

}  // namespace heddle::memory
