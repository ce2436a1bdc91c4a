// EventCount: threads sleep here until something is true that others bring about.
//
// Who brings it about makes it visible and then calls notify(). Who waits is counted, and then looks again:
// with a full fence on both sides, one sees the other. Any thread. Inline, as engines that are plug-ins need
// nothing of libheddle.so.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>

#include "base/clock.hpp"
#include "base/full_fence.hpp"
#include "cores/futex.hpp"

namespace heddle {

class EventCount {
  public:
    /// Returns when `reached` is true; asks it once more after each notify().
    template <class Reached>
    void wait(const Reached& reached) {
        while (!reached()) {
            const uint32_t seen = events_.load(std::memory_order_relaxed);
            sleepers_.fetch_add(1, std::memory_order_relaxed);
            full_fence();
            if (!reached()) futex_wait(events_, seen, Time::max());
            sleepers_.fetch_sub(1, std::memory_order_relaxed);
        }
    }
    /// Sleeps until the next notify(), or so long.
    void nap(Nanoseconds longest) {
        const uint32_t seen = events_.load(std::memory_order_relaxed);
        sleepers_.fetch_add(1, std::memory_order_relaxed);
        futex_wait(events_, seen, SteadyClock().now() + longest);
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
    }
    /// A fence and a load while nobody sleeps.
    void notify() noexcept {
        full_fence();
        if (sleepers_.load(std::memory_order_relaxed) == 0) return;
        events_.fetch_add(1, std::memory_order_relaxed);
        futex_wake(events_, INT_MAX);
    }

  private:
    alignas(64) std::atomic<int> sleepers_{0};
    std::atomic<uint32_t> events_{0};  // a futex: rises while somebody sleeps
};

}  // namespace heddle
