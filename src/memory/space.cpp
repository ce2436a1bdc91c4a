#include "memory/space.hpp"

#include <algorithm>
#include <iterator>

namespace heddle::memory {

Space::Space(uint64_t size) : size_(size) {
    if (size > 0) add({0, size});
}

void Space::add(const Range& hole) {
    holes_.emplace(hole.offset, hole.size);
    by_size_.emplace(hole.size, hole.offset);
    free_bytes_ += hole.size;
}

void Space::remove(Holes::iterator hole) {
    free_bytes_ -= hole->second;
    by_size_.erase({hole->second, hole->first});
    holes_.erase(hole);
}

std::optional<Range> Space::take(uint64_t size) {
    if (size == 0) return Range{};
    const auto best = by_size_.lower_bound({size, 0});
    if (best == by_size_.end()) return {};
    const Range hole{best->second, best->first};
    remove(holes_.find(hole.offset));
    if (hole.size > size) add({hole.offset + size, hole.size - size});
    return Range{hole.offset, size};
}

std::vector<Range> Space::take_in_pieces(uint64_t size) {
    std::vector<Range> taken;
    if (size == 0 || size > free_bytes_) return taken;
    while (size > 0) {
        const uint64_t largest = by_size_.rbegin()->first;
        taken.push_back(*take(std::min(size, largest)));
        size -= taken.back().size;
    }
    std::ranges::sort(taken);
    return taken;
}

Range Space::give_back(const Range& range) {
    if (range.size == 0) return range;
    Range hole = range;
    const auto after = holes_.find(range.end());
    if (after != holes_.end()) {
        hole.size += after->second;
        remove(after);
    }
    const auto before = hole_to(range.offset);
    if (before) {
        hole = {before->offset, before->size + hole.size};
        remove(holes_.find(before->offset));
    }
    add(hole);
    return hole;
}

std::optional<Range> Space::hole_from(uint64_t offset) const {
    const auto found = holes_.find(offset);
    if (found == holes_.end()) return {};
    return Range{found->first, found->second};
}

std::optional<Range> Space::hole_to(uint64_t offset) const {
    const auto after = holes_.lower_bound(offset);
    if (after == holes_.begin()) return {};
    const auto before = std::prev(after);
    if (before->first + before->second != offset) return {};
    return Range{before->first, before->second};
}

}  // namespace heddle::memory
