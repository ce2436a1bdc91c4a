// RankSet: which ranks, without memory of its own where there are no more than 64.
//
// A plain value.
#pragma once

#include <algorithm>
#include <bit>
#include <set>
#include <vector>

#include "heddle/memory_types.hpp"

namespace heddle::memory {

class RankSet {
  public:
    RankSet() = default;
    explicit RankSet(Rank rank) {
        if (rank < kBits) {
            first_ = uint64_t{1} << rank;
        } else {
            more_.resize(rank / kBits);
            more_.back() = uint64_t{1} << rank % kBits;
        }
    }

    RankSet& operator+=(const RankSet& other) {
        first_ |= other.first_;
        if (more_.size() < other.more_.size()) more_.resize(other.more_.size());
        for (size_t i = 0; i < other.more_.size(); ++i) more_[i] |= other.more_[i];
        return *this;
    }
    RankSet& operator-=(const RankSet& other) {
        first_ &= ~other.first_;
        for (size_t i = 0; i < std::min(more_.size(), other.more_.size()); ++i) more_[i] &= ~other.more_[i];
        while (!more_.empty() && more_.back() == 0) more_.pop_back();
        return *this;
    }
    friend bool operator==(const RankSet&, const RankSet&) = default;

    void add_to(std::set<Rank>& ranks) const {
        add_to(ranks, first_, 0);
        for (size_t i = 0; i < more_.size(); ++i) add_to(ranks, more_[i], static_cast<Rank>(i + 1));
    }

  private:
    static constexpr Rank kBits = 64;

    static void add_to(std::set<Rank>& ranks, uint64_t word, Rank place) {
        for (; word != 0; word &= word - 1)
            ranks.insert(place * kBits + static_cast<Rank>(std::countr_zero(word)));
    }

    uint64_t first_ = 0;
    std::vector<uint64_t> more_;  ///< 64 ranks each; the last one is not 0
};

}  // namespace heddle::memory
