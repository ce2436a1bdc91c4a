// rest_while(): for a thread that has inserted far more tasks than have ended, in an engine where it cannot
// run any itself: it sleeps, and leaves its CPU to those that do.
//
// Each time that it wakes it takes a CPU from one of them. So it wakes often only until something has ended;
// then it knows how fast that goes, and sleeps for half of what the others will take, but hardly longer than
// it has known, as they may be faster later. Where tasks are so fine that fewer threads do them as fast it
// goes on soon: there is a CPU for it. Inline, as engines that are plug-ins need nothing of libheddle.so.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"
#include "tasks/event_count.hpp"

namespace heddle {

/// Until `wanted` tasks have ended since, by `ended()`, or some that are fine, or none does for a while: a
/// millisecond before the first one, or a nap. False: none has.
template <class Ended>
bool rest_while(EventCount& news, uint64_t wanted, const Ended& ended) {
    constexpr Nanoseconds kShortest = std::chrono::microseconds(50), kLongest = std::chrono::milliseconds(2);
    constexpr Nanoseconds kFine = std::chrono::microseconds(10);
    constexpr int kMostBefore = 20;
    const SteadyClock clock;
    const Time begin = clock.now();
    const uint64_t before = ended();
    uint64_t done = 0;
    for (int i = 0; i < kMostBefore && done == 0; ++i) {
        news.nap(kShortest);
        done = ended() - before;
    }
    if (done == 0) return false;
    while (done < wanted) {
        const Nanoseconds known = clock.now() - begin, each = known / done;
        if (each < kFine) break;
        const Nanoseconds left = each * (wanted - done);
        news.nap(std::clamp<Nanoseconds>(left / 2, kShortest, std::max(kLongest, known / 2)));
        const uint64_t now = ended() - before;
        if (now == done) break;
        done = now;
    }
    return true;
}

}  // namespace heddle
