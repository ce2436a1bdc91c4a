// Space: which bytes of a piece of memory are free. For the payload of a cache and for the parts of a
// segment.
//
// Knows nothing of the memory itself, keeps nothing in it and rounds nothing up: all of it can be handed out.
// One thread at a time. What is asked for is the best fit, so that large holes stay.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "heddle/memory_types.hpp"
#include "memory/recycled.hpp"

namespace heddle::memory {

class Space {
  public:
    explicit Space(uint64_t size);

    /// In one piece; nothing where there is no hole so large. Size 0 is anywhere and takes nothing.
    [[nodiscard]] std::optional<Range> take(uint64_t size);
    /// In as few pieces as the holes allow, in ascending order; empty, with nothing taken, where less than
    /// `size` is free.
    [[nodiscard]] std::vector<Range> take_in_pieces(uint64_t size);
    /// What was taken, or a part of it. Neighbouring holes become one, which is returned.
    Range give_back(const Range& range);

    [[nodiscard]] uint64_t size() const noexcept { return size_; }
    [[nodiscard]] uint64_t free_bytes() const noexcept { return free_bytes_; }
    [[nodiscard]] uint64_t largest_hole() const noexcept {
        return by_size_.empty() ? 0 : by_size_.rbegin()->first;
    }
    /// The hole that begins or ends at `offset`, if any.
    [[nodiscard]] std::optional<Range> hole_from(uint64_t offset) const;
    [[nodiscard]] std::optional<Range> hole_to(uint64_t offset) const;

  private:
    using Holes = std::map<uint64_t, uint64_t, std::less<>, Recycled<std::pair<const uint64_t, uint64_t>>>;
    using BySize =
        std::set<std::pair<uint64_t, uint64_t>, std::less<>, Recycled<std::pair<uint64_t, uint64_t>>>;

    void add(const Range& hole);
    void remove(Holes::iterator hole);

    uint64_t size_;
    uint64_t free_bytes_ = 0;
    Holes holes_;     // size by offset
    BySize by_size_;  // {size, offset}
};

}  // namespace heddle::memory
