// What the programs share that measure an operation against what it cannot do without: batches of calls of
// each, in turn.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "figures.hpp"

namespace heddle::bench {

inline constexpr int kBatches = 21;

/// The time of each of `calls` calls, call(first) and on, in units of `scale` seconds.
template <class Call>
[[nodiscard]] double each(int first, int calls, double scale, const Call& call) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    for (int i = first; i < first + calls; ++i) call(i);
    return std::chrono::duration<double>(Clock::now() - start).count() / scale / calls;
}

/// A figure of ours(i) and, as its peer, raw(i). One batch more than is told warms up. Numbers go on from
/// batch to batch: who takes ranges in turn comes to another one with each call.
template <class Ours, class Raw>
void against(const std::string& name, const char* unit, double scale, int calls, const Ours& ours,
             const Raw& raw) {
    Figure figure{.name = name, .unit = unit, .values = {}};
    std::vector<double> peer;
    for (int batch = 0; batch <= kBatches; ++batch) {
        const double one = each(batch * calls, calls, scale, ours),
                     other = each(batch * calls, calls, scale, raw);
        if (batch == 0) continue;
        figure.values.push_back(one);
        peer.push_back(other);
    }
    figure.peer_median = median(peer);
    print(figure);
}

}  // namespace heddle::bench
