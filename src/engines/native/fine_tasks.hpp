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
        return std::clamp<Nanoseconds>(kLines * Nanoseconds(line_.load(std::memory_order_relaxed) / kSmooth),
                                       kShortest, kLongest);
    }

    /// The lane whose count a worker times, one after the other until it finds one at work; the worker's own.
    struct Watch {
        uint32_t lane = 0;
        uint64_t seen = 0;  ///< its count, when the worker read it last
    };
    /// By the worker with the lane `own`. Returns the time then.
    Time time_a_line(LaneTable& lanes, const Lane& own, Watch& watch) noexcept {
        const SteadyClock clock;
        const Lane& other = lanes[watch.lane % lanes.size()];
        const Time before = clock.now();
        const Time begin = clock.now();
        const uint64_t count = count_of(other);
        const Time end = clock.now();
        if (&other == &own || count == watch.seen)
            ++watch.lane;
        else if (begin - before < kInterrupted && end - begin < kInterrupted)
            saw((end - begin) - (begin - before));
        return end;
    }
    /// Tasks that its thread has inserted and run.
    [[nodiscard]] static uint64_t count_of(const Lane& lane) noexcept {
        return lane.ran.load(std::memory_order_relaxed) + lane.inserted.load(std::memory_order_relaxed);
    }

    /// A line took so long, with the clock's own time taken off.
    void saw(Nanoseconds took) noexcept {
        const int64_t old = line_.load(std::memory_order_relaxed);
        line_.store(old + std::max<int64_t>(took.count(), 0) - old / kSmooth, std::memory_order_relaxed);
    }

  private:
    /// As many lines as a task has to take to be worth it.
    static constexpr int kLines = 3;
    static constexpr Nanoseconds kShortest{160};
    /// The average is of about so many.
    static constexpr int kSmooth = 8;
    static constexpr Nanoseconds kInterrupted = std::chrono::microseconds(1);

    std::atomic<int64_t> line_{kSmooth * kLongest.count() / kLines};  ///< ns, times kSmooth
};

}  // namespace heddle
