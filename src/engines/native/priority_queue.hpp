// PriorityQueue: the tasks of an engine that have a priority other than 0, highest first, then oldest first.
//
// Any thread. One for all threads: an order over all of them is what a priority asks for. Costs a load while
// it is empty. Tasks of kWhenNothingElseCan come last, oldest first, but do not wait for ever for a pause of
// the others: where none of them was taken for 100 ms the oldest comes before all others.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

#include "base/clock.hpp"
#include "cores/short_lock.hpp"
#include "tasks/task.hpp"

namespace heddle {

class PriorityQueue {
  public:
    static constexpr Nanoseconds kPatience = std::chrono::milliseconds(100);

    PriorityQueue() = default;
    /// `clock` outlives it.
    explicit PriorityQueue(const Clock& clock) : clock_(clock) {}

    /// Throws std::bad_alloc; the task is not in it then.
    void push(Task& task) {
        const std::lock_guard guard(lock_);
        if (task.priority == kWhenNothingElseCan) {
            last_.push_back(&task);
            if (last_.size() == 1) wait_from_now();
        } else {
            heap_.push_back({task.priority, next_++, &task});
            std::ranges::push_heap(heap_, later);
        }
        note();
    }
    /// The first, if its priority is not below 0 or it has waited for long enough, or with `any` in any case.
    /// Null where there is none.
    [[nodiscard]] Task* pop(bool any) noexcept {
        return empty() || (!any && !has_for_now()) ? nullptr : pop_one(any);
    }
    [[nodiscard]] bool empty() const noexcept { return empty_.load(std::memory_order_relaxed); }
    /// Is there one that comes before tasks without a priority?
    [[nodiscard]] bool has_for_now() const noexcept {
        return urgent_.load(std::memory_order_relaxed) || overdue();
    }

  private:
    static constexpr Time kNever = Time::max();

    [[nodiscard, gnu::noinline]] Task* pop_one(bool any) noexcept {
        const std::lock_guard guard(lock_);
        Task* task = nullptr;
        if (overdue() || (any && heap_.empty() && !last_.empty())) {
            task = last_.front();
            last_.pop_front();
            wait_from_now();
        } else if (!heap_.empty() && (any || heap_.front().priority >= 0)) {
            std::ranges::pop_heap(heap_, later);
            task = heap_.back().task;
            heap_.pop_back();
        }
        note();
        return task;
    }
    struct Entry {
        int32_t priority;
        uint64_t number;
        Task* task;
    };
    static bool later(const Entry& a, const Entry& b) {
        return a.priority != b.priority ? a.priority < b.priority : a.number > b.number;
    }
    void wait_from_now() noexcept { due_.store(clock_.now() + kPatience, std::memory_order_relaxed); }
    void note() noexcept {
        if (last_.empty()) due_.store(kNever, std::memory_order_relaxed);
        urgent_.store(!heap_.empty() && heap_.front().priority >= 0, std::memory_order_relaxed);
        empty_.store(heap_.empty() && last_.empty(), std::memory_order_relaxed);
    }
    [[nodiscard]] bool overdue() const noexcept {
        const Time due = due_.load(std::memory_order_relaxed);
        return due != kNever && clock_.now() >= due;
    }

    const SteadyClock steady_{};
    const Clock& clock_ = steady_;
    ShortLock lock_;  // for all below
    uint64_t next_ = 0;
    std::vector<Entry> heap_;
    std::deque<Task*> last_;                         // of kWhenNothingElseCan
    std::atomic<bool> empty_{true}, urgent_{false};  // these are read without the lock, as hints
    std::atomic<Time> due_{kNever};
};

}  // namespace heddle
