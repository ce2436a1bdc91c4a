// RangeTable: things on ranges of bytes, found by what they overlap, in the order of their numbers.
//
// Things of one kind and one range are a group, which is looked at as one: by a search in a tree, however
// many they are. Groups lie sorted by how long their ranges are, to a factor of two, and then by where they
// begin, so that those which a range overlaps are side by side, for each of the lengths that there are. What
// is added, found or erased takes O(log n), and a look at what a range overlaps so much for each length and
// each group. One thread at a time.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "heddle/memory_types.hpp"
#include "memory/recycled.hpp"

namespace heddle::memory {

struct RangePlace {
    uint64_t kind = 0;
    unsigned width = 0;  ///< of the range's size, in bits
    uint64_t offset = 0, end = 0;
    Rank rank = 0;
    uint64_t number = 0;
    friend auto operator<=>(const RangePlace&, const RangePlace&) = default;
};

template <class Thing>
class RangeTable {
  public:
    using Map = std::map<RangePlace, Thing, std::less<>, Recycled<std::pair<const RangePlace, Thing>>>;
    using Iterator = typename Map::iterator;

    [[nodiscard]] static RangePlace place(uint64_t kind, const Range& range, Rank rank, uint64_t number) {
        return {kind,  static_cast<unsigned>(std::bit_width(range.size)), range.offset, range.end(), rank,
                number};
    }

    Iterator add(const RangePlace& place, Thing thing) {
        return map_.insert_or_assign(place, std::move(thing)).first;
    }
    bool erase(const RangePlace& place) { return map_.erase(place) > 0; }
    Iterator erase(Iterator one) { return map_.erase(one); }
    [[nodiscard]] Iterator begin() { return map_.begin(); }
    [[nodiscard]] Iterator end() { return map_.end(); }
    [[nodiscard]] bool empty() const { return map_.empty(); }

    /// Calls it with the begin and the end of each group of that kind that the range overlaps, which it may
    /// erase, until it returns true.
    template <class Visit>
    void for_each_group(uint64_t kind, const Range& range, Visit visit) {
        auto next = map_.lower_bound({.kind = kind});
        while (next != map_.end() && next->first.kind == kind) {
            const unsigned width = next->first.width;
            if (visit_width(kind, width, range, visit)) return;
            next = map_.lower_bound({.kind = kind, .width = width + 1});
        }
    }

    /// Of each group the last one before that number, until one is found; end(): there is none.
    [[nodiscard]] Iterator find_before(uint64_t kind, const Range& range, uint64_t number) {
        Iterator found = map_.end();
        for_each_group(kind, range, [&](Iterator begin, Iterator /*end*/) {
            RangePlace here = begin->first;
            if (here.number >= number) return false;
            here.number = number;
            found = std::prev(map_.lower_bound(here));
            return true;
        });
        return found;
    }

  private:
    template <class Visit>
    bool visit_width(uint64_t kind, unsigned width, const Range& range, Visit& visit) {
        const uint64_t longest = width == 64 ? UINT64_MAX : (uint64_t{1} << width) - 1;
        const uint64_t from = range.offset > longest ? range.offset - longest : 0;
        const auto first = map_.lower_bound({.kind = kind, .width = width, .offset = from});
        auto end = map_.lower_bound({.kind = kind, .width = width, .offset = range.end()});
        if (end == first) return false;
        while (true) {
            RangePlace group = std::prev(end)->first;
            const bool overlaps = group.end > range.offset;
            group.rank = 0;
            group.number = 0;
            const auto begin = map_.lower_bound(group);
            const bool is_last = begin == first;
            const auto before = is_last ? begin : std::prev(begin);
            if (overlaps && visit(begin, end)) return true;
            if (is_last) return false;
            end = std::next(before);
        }
    }

    Map map_;
};

}  // namespace heddle::memory
