// CPUs handed out one by one, each to whoever comes first. Pure functions.
#pragma once

#include <queue>
#include <vector>

#include "base/steps.hpp"

namespace heddle {

/// Hands out `units` one by one, each to the entry that comes first by `before` and has room; returns how
/// many each got. `before(a, got_a, b, got_b)`. n log n in entries + units.
template <class Before>
std::vector<int> hand_out(size_t entries, int units, const std::vector<int>& room, Before before) {
    std::vector<int> got(entries, 0);
    const auto later = [&](size_t a, size_t b) {
        HEDDLE_STEPS(1);
        if (before(a, got[a], b, got[b])) return false;
        if (before(b, got[b], a, got[a])) return true;
        return a > b;
    };
    std::priority_queue<size_t, std::vector<size_t>, decltype(later)> queue(later);
    HEDDLE_STEPS(entries);
    for (size_t i = 0; i < entries; ++i)
        if (room[i] > 0) queue.push(i);
    for (; units > 0 && !queue.empty(); --units) {
        HEDDLE_STEPS(1);
        const size_t i = queue.top();
        queue.pop();
        if (++got[i] < room[i]) queue.push(i);
    }
    return got;
}

/// a/b > c/d for non-negative numbers, a zero denominator being infinitely much.
inline bool larger_quotient(long a, long b, long c, long d) {
    if (b == 0 || d == 0) return b == 0 && d != 0;
    return a * d > c * b;
}

}  // namespace heddle
