#include "streams/kept_states.hpp"

#include <algorithm>

namespace heddle::streams {

bool KeptStates::add(int number, FiredCells cells) {
    auto kind =
        std::find_if(kinds_.begin(), kinds_.end(), [&](const auto& one) { return one.first == cells; });
    if (kind == kinds_.end()) {
        if (kinds_.size() == kMostKinds) return false;
        kind = kinds_.insert(kind, {std::move(cells), ValueRanges()});
    }
    kind->second.add(number);
    return true;
}

void KeptStates::remove(int number) {
    for (auto& [cells, numbers] : kinds_) numbers.remove(number);
}

const FiredCells& KeptStates::of(int number) const {
    static const FiredCells none;
    for (const auto& [cells, numbers] : kinds_)
        if (numbers.contains(number)) return cells;
    return none;
}

int KeptStates::last_alike(int number) const {
    for (const auto& [cells, numbers] : kinds_)
        if (numbers.contains(number)) return numbers.last_of(number);
    return number;
}

uint64_t KeptStates::count() const {
    uint64_t count = 0;
    for (const auto& [cells, numbers] : kinds_) count += numbers.count();
    return count;
}

}  // namespace heddle::streams
