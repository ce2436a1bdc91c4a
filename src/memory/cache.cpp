#include "memory/cache.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace heddle::memory {
namespace {

/// So that a client that says that it uses everything does not hold up the others.
constexpr int kMostSpared = 64;
/// Allocations that have no copies any more stay known, since they mostly have some again soon.
constexpr size_t kMostWithoutCopies = 16;

}  // namespace

Cache::Room Cache::reserve(uint64_t size, CacheEntry*& entry, std::vector<GlobalRange>& evicted) {
    if (size > space_.size()) return Room::kNever;
    std::optional<Range> place = space_.take(size);
    if (!place && !dropped_.empty()) {
        sweep();
        place = space_.take(size);
    }
    if (!place) {
        spare_what_was_used();
        entry = replace_oldest(size, evicted);
        if (entry != nullptr) return Room::kFound;
        if (!make_room(size, evicted)) return Room::kFull;
        place = space_.take(size);
    }
    entry = &entries_.emplace_back();
    entry->self = std::prev(entries_.end());
    entry->place = *place;
    entry->pins = 1;
    ++pinned_;
    if (size > 0) by_place_.insert(*entry);
    return Room::kFound;
}

void Cache::publish(CacheEntry& entry, const GlobalRange& global, CacheEntry::State state) {
    if (by_range_.size() == buckets_.size()) {
        std::vector<ByRange::bucket_type> more(2 * buckets_.size());
        by_range_.rehash({more.data(), more.size()});
        buckets_.swap(more);
    }
    Copies& copies = copies_[global.data];
    ++copies.count;
    copies.longest = std::max(copies.longest, global.range.size);
    entry.global = global;
    entry.state = state;
    by_range_.insert(entry);
    by_begin_.insert(entry);
    if (state == CacheEntry::State::kValid) show(entry);
}

void Cache::complete(CacheEntry& entry) {
    entry.state = CacheEntry::State::kValid;
    show(entry);
}

void Cache::show(CacheEntry& entry) {
    if (listings_ != nullptr && entry.place.size > 0)
        entry.listed = listings_->list(entry.global, entry.place.offset);
}

void Cache::hide(CacheEntry& entry) {
    by_range_.erase(by_range_.iterator_to(entry));
    by_begin_.erase(by_begin_.iterator_to(entry));
    const auto copies = copies_.find(entry.global.data);
    if (--copies->second.count == 0) {
        copies->second.longest = 0;
        if (copies_.size() > kMostWithoutCopies) copies_.erase(copies);
    }
    if (entry.state == CacheEntry::State::kValid && entry.listed != kNoPin) listings_->unlist(entry.listed);
    entry.state = CacheEntry::State::kStale;
    entry.tag.reset();
}

void Cache::withdraw(CacheEntry& entry) {
    hide(entry);
    if (entry.pins == 0) drop(entry);
}

bool Cache::take_over(CacheEntry& entry) {
    pin(entry);
    withdraw(entry);
    if (is_in_use_elsewhere(entry)) {
        unpin(entry);
        return false;
    }
    entry.state = CacheEntry::State::kPrivate;
    entry.listed = kNoPin;
    return true;
}

void Cache::keep_part(CacheEntry& entry, const Range& part) {
    const Range all = entry.place;
    if (all.size > 0) by_place_.erase(by_place_.iterator_to(entry));
    space_.give_back({all.offset, part.offset - all.offset});
    space_.give_back({part.end(), all.end() - part.end()});
    entry.place = part;
    if (part.size > 0) by_place_.insert(entry);
}

void Cache::close() {
    for (const CacheEntry& entry : entries_)
        if (entry.state == CacheEntry::State::kValid && entry.listed != kNoPin)
            listings_->unlist(entry.listed);
}

CacheEntry* Cache::find(Pin pin) {
    const auto found =
        std::ranges::find_if(entries_, [&](const CacheEntry& entry) { return entry.listed == pin; });
    return found == entries_.end() ? nullptr : &*found;
}

const CacheEntry* Cache::find(const GlobalRange& global) const {
    const CacheEntry* under_way = nullptr;
    for (auto one = by_range_.find(global); one != by_range_.end() && one->global == global; ++one) {
        if (one->state == CacheEntry::State::kValid) return &*one;
        under_way = &*one;
    }
    const CacheEntry* larger = nullptr;
    for_each_overlapping(global, [&](const CacheEntry& entry) {
        if (entry.state == CacheEntry::State::kValid && entry.global.range.contains(global.range))
            larger = &entry;
    });
    return larger != nullptr ? larger : under_way;
}

std::vector<GlobalRange> Cache::copies() const {
    std::vector<GlobalRange> all;
    for (const CacheEntry& copy : by_range_) all.push_back(copy.global);
    return all;
}

void Cache::pin(CacheEntry& entry) {
    if (entry.pins++ > 0) return;
    ++pinned_;
    if (entry.is_linked())
        unpinned_.erase(unpinned_.iterator_to(entry));
    else
        std::erase(dropped_, &entry);
}

void Cache::unpin(CacheEntry& entry) {
    if (--entry.pins > 0) return;
    --pinned_;
    if (entry.state != CacheEntry::State::kValid) return drop(entry);
    entry.last_use = ++uses_;
    unpinned_.push_back(entry);
}

bool Cache::is_in_use_elsewhere(const CacheEntry& entry) const {
    return entry.listed != kNoPin && listings_->is_pinned(entry.listed);
}

bool Cache::is_in_use(const CacheEntry& entry) const {
    return entry.pins > 0 || is_in_use_elsewhere(entry);
}

size_t Cache::pinned() {
    sweep();
    if (listings_ == nullptr) return pinned_;
    const std::vector<Pin> elsewhere = listings_->pins();
    const auto in_use = [&](const CacheEntry& entry) {
        return std::ranges::binary_search(elsewhere, entry.listed);
    };
    return pinned_ + dropped_.size() + static_cast<size_t>(std::ranges::count_if(unpinned_, in_use));
}

uint64_t Cache::free_bytes() {
    sweep();
    return space_.free_bytes();
}

bool Cache::has_room(uint64_t size) {
    if (size > space_.largest_hole()) sweep();
    return size <= space_.largest_hole();
}

void Cache::sweep() {
    for (CacheEntry* const entry : std::exchange(dropped_, {})) drop(*entry);
}

void Cache::drop(CacheEntry& entry) {
    if (entry.is_linked()) unpinned_.erase(unpinned_.iterator_to(entry));
    if (is_in_use_elsewhere(entry))
        dropped_.push_back(&entry);
    else
        remove(entry);
}

void Cache::remove(CacheEntry& entry) {
    if (entry.place.size > 0) by_place_.erase(by_place_.iterator_to(entry));
    space_.give_back(entry.place);
    entries_.erase(entry.self);
}

CacheEntry* Cache::evictable_from(uint64_t offset) {
    const auto found = by_place_.find(offset);
    return found != by_place_.end() && may_go(*found) ? &*found : nullptr;
}

CacheEntry* Cache::evictable_to(uint64_t offset) {
    const auto after = by_place_.lower_bound(offset);
    if (after == by_place_.begin()) return nullptr;
    CacheEntry& before = *std::prev(after);
    return before.place.end() == offset && may_go(before) ? &before : nullptr;
}

void Cache::take_in_holes(Range& window) const {
    if (const auto hole = space_.hole_to(window.offset)) window = {hole->offset, hole->size + window.size};
    if (const auto hole = space_.hole_from(window.end())) window.size += hole->size;
}

bool Cache::grow(Range& window) {
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

void Cache::spare_what_was_used() {
    if (listings_ == nullptr) return;
    for (int i = 0; i < kMostSpared && !unpinned_.empty(); ++i) {
        CacheEntry& oldest = unpinned_.front();
        if (oldest.listed == kNoPin || !listings_->take_use(oldest.listed)) return;
        unpinned_.pop_front();
        oldest.last_use = ++uses_;
        unpinned_.push_back(oldest);
    }
}

CacheEntry* Cache::replace_oldest(uint64_t size, std::vector<GlobalRange>& evicted) {
    if (unpinned_.empty()) return nullptr;
    CacheEntry& oldest = unpinned_.front();
    if (oldest.place.size != size || size == 0 || is_in_use_elsewhere(oldest)) return nullptr;
    evicted.push_back(oldest.global);
    if (!take_over(oldest)) return nullptr;  // a client has begun to use it just now
    oldest.counted = false;
    return &oldest;
}

bool Cache::make_room(uint64_t size, std::vector<GlobalRange>& evicted) {
    // From the least recently used one on: where its neighbourhood is in use, the next one's is looked at.
    std::vector<Range> too_small;
    for (const CacheEntry& oldest : unpinned_) {
        if (oldest.place.size == 0 || is_in_use_elsewhere(oldest)) continue;
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
             one != by_place_.end() && one->place.offset < window.end();) {
            CacheEntry& entry = *one++;
            evicted.push_back(entry.global);
            withdraw(entry);
        }
        // A client may have begun to use one of them just now.
        return has_room(size) || make_room(size, evicted);
    }
    return false;
}

}  // namespace heddle::memory
