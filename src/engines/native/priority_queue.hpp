// PriorityQueue: the tasks of an engine that have a priority other than 0, highest first, then oldest first.
//
// Any thread. One for all threads: an order over all of them is what a priority asks for. Costs a load while
// it is empty.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "cores/short_lock.hpp"
#include "tasks/task.hpp"

namespace heddle {

class PriorityQueue {
  public:
    /// Throws std::bad_alloc; the task is not in it then.
    void push(Task& task) {
        const std::lock_guard guard(lock_);
        heap_.push_back({task.priority, next_++, &task});
        std::ranges::push_heap(heap_, later);
        note();
    }
    /// The first whose priority is above 0, or with `any` the first. Null where there is none.
    [[nodiscard]] Task* pop(bool any) noexcept { return empty() ? nullptr : pop_one(any); }
    [[nodiscard]] bool empty() const noexcept { return size_.load(std::memory_order_relaxed) == 0; }

  private:
    [[nodiscard, gnu::noinline]] Task* pop_one(bool any) noexcept {
        const std::lock_guard guard(lock_);
        if (heap_.empty() || (!any && heap_.front().priority < 0)) return nullptr;
        std::ranges::pop_heap(heap_, later);
        Task* task = heap_.back().task;
        heap_.pop_back();
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
    void note() { size_.store(heap_.size(), std::memory_order_relaxed); }

    ShortLock lock_;  // for all below
    uint64_t next_ = 0;
    std::vector<Entry> heap_;
    std::atomic<size_t> size_{0};  // read without the lock, as a hint
};

}  // namespace heddle
