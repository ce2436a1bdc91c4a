// Cache: which ranges lie where in the payload of one cache, which of them may go, and which go next.
//
// It knows nothing of the payload itself, and keeps nothing in it. One thread at a time. A cache exactly as
// large as what is pinned in it holds it: there is no padding, and where room is made neighbours go together.
// Where clients of other processes pin copies by themselves (copy_listings.hpp) nobody says when they cease
// to: what they have used last stays until its room is needed, and is looked at then.
#pragma once

#include <algorithm>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/intrusive/unordered_set.hpp>
#include <list>
#include <map>
#include <utility>
#include <vector>

#include "heddle/memory_types.hpp"
#include "memory/copy_listings.hpp"
#include "memory/recycled.hpp"
#include "memory/space.hpp"

namespace heddle::memory {

struct Access;

/// A piece of the payload in use. Of no size, too. What a hit reads comes first.
struct CacheEntry : boost::intrusive::list_base_hook<> {
    using TreeHook = boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>>;
    enum class State {
        kPrivate,   ///< of one client, which writes it
        kFetching,  ///< a copy that is under way
        kValid,     ///< a copy
        kStale,     ///< a copy that was overwritten elsewhere, and is still looked at
    };
    boost::intrusive::unordered_set_member_hook<boost::intrusive::store_hash<true>> by_range;
    /// Of a copy.
    GlobalRange global;
    Range place;
    State state = State::kPrivate;
    /// Of a copy of which all was put with it.
    std::optional<Tag> tag;
    /// Its homes want to know of each get with that tag.
    bool counted = false;
    /// Who uses it: clients, and operations under way.
    uint32_t pins = 0;
    uint64_t last_use = 0;
    /// Where clients of other processes find it while it is valid; later, by what they may still use it.
    Pin listed = kNoPin;
    /// Of a copy under way.
    Access* access = nullptr;
    TreeHook by_begin, by_place;
    std::list<CacheEntry>::iterator self;
};

class Cache {
  public:
    /// `listings` show its copies to clients of other processes; null: it has no such clients. They outlive
    /// it.
    explicit Cache(uint64_t size, CopyListings* listings = nullptr)
        : space_(size),
          listings_(listings),
          by_range_(ByRange::bucket_traits(buckets_.data(), buckets_.size())) {}

    enum class Room { kFound, kFull, kNever };
    /// A private entry with one pin. `evicted` gets what copies had to go for it.
    [[nodiscard]] Room reserve(uint64_t size, CacheEntry*& entry, std::vector<GlobalRange>& evicted);

    /// The entry, private till now, is to be found as a copy from now on.
    void publish(CacheEntry& entry, const GlobalRange& global, CacheEntry::State state);
    /// The copy that was under way is there.
    void complete(CacheEntry& entry);
    /// The copy is not found any more; it stays until nobody uses it.
    void withdraw(CacheEntry& entry);
    /// A valid copy that nobody uses becomes a private entry, with one pin. False: somebody had begun to use
    /// it, and it is withdrawn.
    [[nodiscard]] bool take_over(CacheEntry& entry);
    /// Of a private entry this part of its place, and no more.
    void keep_part(CacheEntry& entry, const Range& part);
    /// Clients of other processes find none of its copies any more.
    void close();
    /// A copy that holds all of the range: a valid one before one that is under way. Null: none.
    [[nodiscard]] const CacheEntry* find(const GlobalRange& global) const;
    [[nodiscard]] CacheEntry* find(const GlobalRange& global) {
        return const_cast<CacheEntry*>(std::as_const(*this).find(global));
    }
    /// What a client of another process has pinned; null: nothing that is still there.
    [[nodiscard]] CacheEntry* find(Pin pin);
    /// Of the copies that can be found. The function may withdraw the one that it gets.
    template <class Function>
    void for_each_overlapping(const GlobalRange& global, Function function) const;
    template <class Function>
    void for_each_overlapping(const GlobalRange& global, Function function) {
        std::as_const(*this).for_each_overlapping(
            global, [&](const CacheEntry& entry) { function(const_cast<CacheEntry&>(entry)); });
    }

    void pin(CacheEntry& entry);
    /// What nobody uses any more stays if it is a valid copy, until its room is needed.
    void unpin(CacheEntry& entry);

    [[nodiscard]] uint64_t size() const noexcept { return space_.size(); }
    [[nodiscard]] uint64_t free_bytes();
    [[nodiscard]] bool has_room(uint64_t size);
    [[nodiscard]] bool is_in_use(const CacheEntry& entry) const;
    [[nodiscard]] size_t entries() const noexcept { return entries_.size(); }
    /// How many entries are in use by somebody.
    [[nodiscard]] size_t pinned();
    /// Of clients of other processes, without a message.
    [[nodiscard]] uint64_t hits_elsewhere() const { return listings_ == nullptr ? 0 : listings_->hits(); }
    [[nodiscard]] size_t copies_of(DataId data) const {
        const auto found = copies_.find(data);
        return found == copies_.end() ? 0 : found->second.count;
    }
    /// Ranges of all copies.
    [[nodiscard]] std::vector<GlobalRange> copies() const;

  private:
    using Lru = boost::intrusive::list<CacheEntry, boost::intrusive::constant_time_size<false>>;
    struct RangeOf {
        using type = GlobalRange;
        const type& operator()(const CacheEntry& entry) const { return entry.global; }
    };
    using ByRange = boost::intrusive::unordered_multiset<
        CacheEntry,
        boost::intrusive::member_hook<CacheEntry, decltype(CacheEntry::by_range), &CacheEntry::by_range>,
        boost::intrusive::key_of_value<RangeOf>, boost::intrusive::hash<std::hash<GlobalRange>>,
        boost::intrusive::equal<std::equal_to<GlobalRange>>, boost::intrusive::power_2_buckets<true>>;
    template <CacheEntry::TreeHook CacheEntry::*kHook, class KeyOf>
    using Tree = boost::intrusive::multiset<
        CacheEntry, boost::intrusive::member_hook<CacheEntry, CacheEntry::TreeHook, kHook>,
        boost::intrusive::key_of_value<KeyOf>, boost::intrusive::constant_time_size<false>>;
    /// Where a copy begins.
    struct BeginOf {
        using type = std::pair<DataId, uint64_t>;
        type operator()(const CacheEntry& entry) const {
            return {entry.global.data, entry.global.range.offset};
        }
    };
    using ByBegin = Tree<&CacheEntry::by_begin, BeginOf>;
    struct PlaceOf {
        using type = uint64_t;
        const type& operator()(const CacheEntry& entry) const { return entry.place.offset; }
    };
    using ByPlace = Tree<&CacheEntry::by_place, PlaceOf>;
    static constexpr size_t kFewestBuckets = 64;  // a power of two
    /// Of one allocation; the longest of its copies tells how far back one must look.
    struct Copies {
        size_t count = 0;
        uint64_t longest = 0;
    };

    /// The least recently used copy, where it has just that size, as a private entry: as make_room() and a
    /// new entry in its place, at a fraction of their cost. Null: not so.
    [[nodiscard]] CacheEntry* replace_oldest(uint64_t size, std::vector<GlobalRange>& evicted);
    [[nodiscard]] bool make_room(uint64_t size, std::vector<GlobalRange>& evicted);
    /// The oldest of the two entries beside the window that may go; the window grows over it and over holes.
    [[nodiscard]] bool grow(Range& window);
    void take_in_holes(Range& window) const;
    [[nodiscard]] bool is_in_use_elsewhere(const CacheEntry& entry) const;
    [[nodiscard]] bool may_go(const CacheEntry& entry) const {
        return entry.state == CacheEntry::State::kValid && !is_in_use(entry);
    }
    [[nodiscard]] CacheEntry* evictable_from(uint64_t offset);
    [[nodiscard]] CacheEntry* evictable_to(uint64_t offset);
    void show(CacheEntry& entry);
    /// It is not found as a copy any more.
    void hide(CacheEntry& entry);
    /// One that is no copy any more, which nobody here uses.
    void drop(CacheEntry& entry);
    void remove(CacheEntry& entry);
    /// Removes what clients of other processes have ceased to use.
    void sweep();
    /// What such clients have used since this was called last is not the next to go.
    void spare_what_was_used();

    Space space_;
    CopyListings* listings_;
    std::list<CacheEntry, Recycled<CacheEntry>> entries_;
    // What they are found by. Their hooks are in the entries, and the table is in buckets_: in this order.
    ByPlace by_place_;  // those that have a size
    std::vector<ByRange::bucket_type> buckets_ = std::vector<ByRange::bucket_type>(kFewestBuckets);
    ByRange by_range_;
    ByBegin by_begin_;
    std::map<DataId, Copies, std::less<>, Recycled<std::pair<const DataId, Copies>>> copies_;
    Lru unpinned_;                      // the next to go first
    std::vector<CacheEntry*> dropped_;  // in use by clients of other processes alone, and no copies any more
    uint64_t uses_ = 0;
    size_t pinned_ = 0;
};

template <class Function>
void Cache::for_each_overlapping(const GlobalRange& global, Function function) const {
    const auto found = copies_.find(global.data);
    if (found == copies_.end()) return;
    const uint64_t from = global.range.offset - std::min(global.range.offset, found->second.longest);
    auto copy = by_begin_.lower_bound({global.data, from});
    while (copy != by_begin_.end() && BeginOf()(*copy) < BeginOf::type(global.data, global.range.end())) {
        const CacheEntry& entry = *copy;
        ++copy;
        if (entry.global.range.overlaps(global.range)) function(entry);
    }
}

}  // namespace heddle::memory
