// Cache: which ranges lie where in the payload of one cache, which of them may go, and which go next.
//
// It knows nothing of the payload itself, and keeps nothing in it. One thread at a time. A cache exactly as
// large as what is pinned in it holds it: there is no padding, and where room is made neighbours go together.
#pragma once

#include <algorithm>
#include <boost/intrusive/list.hpp>
#include <list>
#include <map>
#include <unordered_map>
#include <vector>

#include "heddle/memory_types.hpp"
#include "memory/space.hpp"

namespace heddle::memory {

struct Access;

/// A piece of the payload in use. Of no size, too.
struct CacheEntry : boost::intrusive::list_base_hook<> {
    enum class State {
        kPrivate,   ///< of one client, which writes it
        kFetching,  ///< a copy that is under way
        kValid,     ///< a copy
        kStale,     ///< a copy that was overwritten elsewhere, and is still looked at
    };
    State state = State::kPrivate;
    Range place;
    /// Of a copy.
    GlobalRange global;
    /// Of a copy of which all was put with it.
    std::optional<Tag> tag;
    /// Its homes want to know of each get with that tag.
    bool counted = false;
    /// Who uses it: clients, and operations under way.
    uint32_t pins = 0;
    /// Of a copy under way.
    Access* access = nullptr;
    uint64_t last_use = 0;
    std::list<CacheEntry>::iterator self;
};

class Cache {
  public:
    explicit Cache(uint64_t size) : space_(size) {}

    enum class Room { kFound, kFull, kNever };
    /// A private entry with one pin. `evicted` gets what copies had to go for it.
    [[nodiscard]] Room reserve(uint64_t size, CacheEntry*& entry, std::vector<GlobalRange>& evicted);

    /// The entry, private till now, is to be found as a copy from now on.
    void publish(CacheEntry& entry, const GlobalRange& global, CacheEntry::State state);
    /// The copy is not found any more; it stays until nobody uses it.
    void withdraw(CacheEntry& entry);
    /// A valid copy that nobody uses becomes a private entry, with one pin.
    void take_over(CacheEntry& entry);
    /// A copy that holds all of the range: a valid one before one that is under way. Null: none.
    [[nodiscard]] CacheEntry* find(const GlobalRange& global) const;
    /// Of the copies that can be found.
    template <class Function>
    void for_each_overlapping(const GlobalRange& global, Function function) const;

    void pin(CacheEntry& entry);
    /// What nobody uses any more stays if it is a valid copy, until its room is needed.
    void unpin(CacheEntry& entry);

    [[nodiscard]] uint64_t size() const noexcept { return space_.size(); }
    [[nodiscard]] uint64_t free_bytes() const noexcept { return space_.free_bytes(); }
    [[nodiscard]] bool has_room(uint64_t size) const noexcept { return size <= space_.largest_hole(); }
    [[nodiscard]] size_t entries() const noexcept { return entries_.size(); }
    /// How many entries are in use by somebody.
    [[nodiscard]] size_t pinned() const noexcept { return pinned_; }
    /// Ranges of all copies.
    [[nodiscard]] std::vector<GlobalRange> copies() const;

  private:
    using Lru = boost::intrusive::list<CacheEntry, boost::intrusive::constant_time_size<false>>;
    /// The copies of one allocation by where they begin; the longest tells how far back one must look.
    struct Copies {
        std::multimap<uint64_t, CacheEntry*> by_begin;
        uint64_t longest = 0;
    };

    [[nodiscard]] bool make_room(uint64_t size, std::vector<GlobalRange>& evicted);
    /// The oldest of the two entries beside the window that may go; the window grows over it and over holes.
    [[nodiscard]] bool grow(Range& window) const;
    void take_in_holes(Range& window) const;
    [[nodiscard]] CacheEntry* evictable_from(uint64_t offset) const;
    [[nodiscard]] CacheEntry* evictable_to(uint64_t offset) const;
    void remove(CacheEntry& entry);

    Space space_;
    std::list<CacheEntry> entries_;
    std::map<uint64_t, CacheEntry*> by_place_;  // those that have a size
    std::unordered_multimap<GlobalRange, CacheEntry*> by_range_;
    std::map<DataId, Copies> copies_;
    Lru unpinned_;  // the next to go first
    uint64_t uses_ = 0;
    size_t pinned_ = 0;
};

template <class Function>
void Cache::for_each_overlapping(const GlobalRange& global, Function function) const {
    const auto found = copies_.find(global.data);
    if (found == copies_.end()) return;
    const Copies& copies = found->second;
    const uint64_t from = global.range.offset - std::min(global.range.offset, copies.longest);
    auto copy = copies.by_begin.lower_bound(from);
    while (copy != copies.by_begin.end() && copy->first < global.range.end()) {
        CacheEntry& entry = *copy->second;
        ++copy;  // the function may withdraw it
        if (entry.global.range.overlaps(global.range)) function(entry);
    }
}

}  // namespace heddle::memory
