// RangeMap: a value for each byte of 0 .. size - 1, kept as the ranges in which it is the same. No locks.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>

namespace heddle::devices {

template <class Value>
class RangeMap {
  public:
    RangeMap(size_t size, Value value) : size_(size) { starts_.emplace(0, std::move(value)); }

    [[nodiscard]] size_t pieces() const noexcept { return starts_.size(); }

    /// visit(offset, size, value) for the pieces of a range, in order; the value may be changed. The range is
    /// not empty, and inside.
    template <class Visit>
    void visit(size_t offset, size_t size, const Visit& visit_piece) {
        split(offset);
        split(offset + size);
        for (auto at = starts_.find(offset); at != starts_.end() && at->first < offset + size; ++at) {
            const auto next = std::next(at);
            const size_t end = next == starts_.end() ? size_ : next->first;
            visit_piece(at->first, end - at->first, at->second);
        }
    }

    /// Joins neighbours of the same value in and beside a range.
    void join(size_t offset, size_t size) {
        auto at = starts_.upper_bound(offset);
        at = std::prev(at);
        if (at != starts_.begin()) --at;
        while (at != starts_.end() && at->first <= offset + size) {
            const auto next = std::next(at);
            if (next != starts_.end() && next->second == at->second)
                starts_.erase(next);
            else
                at = next;
        }
    }

  private:
    void split(size_t at) {
        if (at >= size_) return;
        const auto piece = std::prev(starts_.upper_bound(at));
        if (piece->first != at) starts_.emplace_hint(std::next(piece), at, piece->second);
    }

    size_t size_;
    std::map<size_t, Value> starts_;
};

}  // namespace heddle::devices
