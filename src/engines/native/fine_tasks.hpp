// FineTasks: how short tasks are that are not worth being handed to another thread.
//
// A task that is handed over takes some lines of memory from one cache to another: a lock, its record, its
// data, the counts. What such a line takes depends on where the CPUs are, by a factor of five: on one die or
// on two, and a virtual CPU may be here now and there later. So each worker times, whenever it looks how it
// gets on, how long it takes to read a count that another thread has written since.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.hpp"
#include "tasks/lane.hpp"

namespace heddle {

class FineTasks {
  public:
    /// Before anybody has looked, and at most: for CPUs that are far apart.
    static constexpr Nanoseconds kLongest{400};

    [[nodiscard]] Nanoseconds limit() const noexcept {
        return std::clamp<Nanoseconds>(kLines * line(), kShortest, kLongest);
    }

    /// By the thread with this lane, which has run a few tasks since its last look. Returns the time then.
    Time look(LaneTable& lanes, const Lane& own) noexcept {
        const SteadyClock clock;
        const uint32_t watched = watched_.load(std::memory_order_relaxed);
        const Lane& other = lanes[watched % lanes.size()];
        const Time before = clock.now();
        const Time begin = clock.now();
        const uint64_t count = count_of(other);
        const Time end = clock.now();
        if (&other != &own && count != seen_.load(std::memory_order_relaxed)) {
            saw((end - begin) - (begin - before));
            seen_.store(count, std::memory_order_relaxed);
        } else {
            watched_.store(watched + 1, std::memory_order_relaxed);
            seen_.store(count_of(lanes[(watched + 1) % lanes.size()]), std::memory_order_relaxed);
        }
        return end;
    }

  private:
    /// As many of those times as a task has to take.
    static constexpr int kLines = 3;
    static constexpr Nanoseconds kShortest{160};
    /// One look in so many changes it entirely; what takes longer was interrupted.
    static constexpr int kSmooth = 8;
    static constexpr Nanoseconds kInterrupted = std::chrono::microseconds(1);

    [[nodiscard]] static uint64_t count_of(const Lane& lane) noexcept {
        return lane.ran.load(std::memory_order_relaxed) + lane.inserted.load(std::memory_order_relaxed);
    }
    [[nodiscard]] Nanoseconds line() const noexcept {
        return Nanoseconds(line_.load(std::memory_order_relaxed) / kSmooth);
    }
    void saw(Nanoseconds took) noexcept {
        if (took > kInterrupted) return;
        const int64_t old = line_.load(std::memory_order_relaxed);
        line_.store(old + took.count() - old / kSmooth, std::memory_order_relaxed);
    }

    std::atomic<int64_t> line_{kSmooth * kLongest.count() / kLines};  ///< ns, times kSmooth
    std::atomic<uint32_t> watched_{0};                                ///< a lane, counted on without end
    std::atomic<uint64_t> seen_{0};                                   ///< its count at the latest look
};

}  // namespace heddle
