// PriorityQueue: the tasks of an engine that have a priority other than 0, highest first, then oldest first.
//
// Any thread. One for all threads: an order over all of them is what a priority asks for. Costs a load while
// it is empty. Tasks of kWhenNothingElseCan come last, but do not wait for ever for a pause of the others:
// one of them comes every 20 ms.
#pragma once

#include <algorithm>
#include <atomic>
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
        heap_.push_back({task.priority, next_++, &task});
        std::ranges::push_heap(heap_, later);
        note(heap_.front().task == &task);
    }
    /// The first whose priority is above 0 or which has waited for long enough, or with `any` the first. Null
    /// where there is none.
    [[nodiscard]] Task* pop(bool any) noexcept { return empty() ? nullptr : pop_one(any, overdue()); }
    [[nodiscard]] bool empty() const noexcept { return size_.load(std::memory_order_relaxed) == 0; }

  private:
    static constexpr Time kNever = Time::max();

    [[nodiscard, gnu::noinline]] Task* pop_one(bool any, bool overdue) noexcept {
        const std::lock_guard guard(lock_);
        if (heap_.empty() || (!any && !overdue && heap_.front().priority < 0)) return nullptr;
        if (heap_.front().priority < 0) patience_ = any ? kPatience : 2 * patience_;
        std::ranges::pop_heap(heap_, later);
        Task* task = heap_.back().task;
        heap_.pop_back();
        note(true);
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
    /// `another`: another one is first now.
    void note(bool another) {
        size_.store(heap_.size(), std::memory_order_relaxed);
        if (!another) return;
        const bool last = !heap_.empty() && heap_.front().priority == kWhenNothingElseCan;
        due_.store(last ? clock_.now() + patience_ : kNever, std::memory_order_relaxed);
    }
    [[nodiscard]] bool overdue() const noexcept {
        const Time due = due_.load(std::memory_order_relaxed);
        return due != kNever && clock_.now() >= due;
    }

    const SteadyClock steady_{};
    const Clock& clock_ = steady_;
    ShortLock lock_;  // for all below
    uint64_t next_ = 0;
    Nanoseconds patience_ = kPatience;  // with the next
    std::vector<Entry> heap_;
    std::atomic<size_t> size_{0};  // read without the lock, as hints
    std::atomic<Time> due_{kNever};
};

}  // namespace heddle
