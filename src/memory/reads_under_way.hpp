// ReadsUnderWay: the gets of a caching agent that have room for a copy and have not got all of it, found by
// what they read.
//
// A get has its place in it, so that it needs no memory. One thread at a time.
#pragma once

#include <algorithm>
#include <boost/intrusive/set.hpp>
#include <utility>

#include "heddle/memory_types.hpp"

namespace heddle::memory {

struct Access;

class ReadsUnderWay {
  public:
    /// Of one access. Linked while it is among them.
    struct Place : boost::intrusive::set_base_hook<boost::intrusive::optimize_size<true>> {
        GlobalRange global;
        Access* access = nullptr;
    };

    void add(Place& place, const GlobalRange& global, Access& access) {
        place.global = global;
        place.access = &access;
        by_begin_.insert(place);
        longest_ = std::max(longest_, global.range.size);
    }
    /// Nothing happens to one that is not among them.
    void remove(Place& place) {
        if (!place.is_linked()) return;
        by_begin_.erase(by_begin_.iterator_to(place));
        if (by_begin_.empty()) longest_ = 0;
    }
    [[nodiscard]] size_t size() const noexcept { return by_begin_.size(); }
    [[nodiscard]] bool any_overlapping(const GlobalRange& global) const {
        bool found = false;
        for_each_overlapping(global, [&](const Access& /*access*/) { found = true; });
        return found;
    }
    template <class Function>
    void for_each_overlapping(const GlobalRange& global, Function function) const {
        const uint64_t from = global.range.offset - std::min(global.range.offset, longest_);
        const Begin end{global.data, global.range.end()};
        for (auto one = by_begin_.lower_bound(Begin(global.data, from));
             one != by_begin_.end() && BeginOf()(*one) < end; ++one)
            if (one->global.range.overlaps(global.range)) function(*one->access);
    }

  private:
    using Begin = std::pair<DataId, uint64_t>;
    struct BeginOf {
        using type = Begin;
        type operator()(const Place& place) const { return {place.global.data, place.global.range.offset}; }
    };

    boost::intrusive::multiset<Place, boost::intrusive::key_of_value<BeginOf>> by_begin_;
    /// How far back one must look for those that overlap; of all that have been there since there was none.
    uint64_t longest_ = 0;
};

}  // namespace heddle::memory
