// ReadyQueue: tasks of one thread that could run; the thread itself takes the newest, others the oldest.
//
// Its owner pushes and pops at one end, so that it goes on with what is in its caches; a thief takes half of
// it from the other end, where the largest pieces of work lie, and leaves fine tasks to their owner
// otherwise. A short lock makes each of these one step: what an owner pays for it is less than the fence that
// a queue without a lock needs in every pop, and a thief that takes many pays once.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

#include "cores/short_lock.hpp"
#include "tasks/task.hpp"

namespace heddle {

class alignas(64) ReadyQueue {
  public:
    static constexpr size_t kMostStolen = 32;

    /// Any thread, though usually the owner. Throws std::bad_alloc where the queue cannot grow; the task is
    /// not in it then.
    void push(Task& task) {
        const std::lock_guard guard(lock_);
        if (size_.load(std::memory_order_relaxed) == capacity_) grow();
        const size_t size = size_.load(std::memory_order_relaxed);
        ring_[(first_ + size) & (capacity_ - 1)] = &task;
        size_.store(size + 1, std::memory_order_relaxed);
    }
    /// The newest, or null.
    [[nodiscard]] Task* pop() noexcept {
        if (size_.load(std::memory_order_relaxed) == 0) return nullptr;
        const std::lock_guard guard(lock_);
        const size_t size = size_.load(std::memory_order_relaxed);
        if (size == 0) return nullptr;
        size_.store(size - 1, std::memory_order_relaxed);
        return ring_[(first_ + size - 1) & (capacity_ - 1)];
    }
    /// The oldest half, at most `most`, which is no more than kMostStolen; returns how many.
    [[nodiscard]] size_t steal(Task** tasks, size_t most = kMostStolen) noexcept {
        if (size_.load(std::memory_order_relaxed) == 0) return 0;
        const std::lock_guard guard(lock_);
        const size_t size = size_.load(std::memory_order_relaxed);
        const size_t count = std::min((size + 1) / 2, most);
        for (size_t i = 0; i < count; ++i) tasks[i] = ring_[(first_ + i) & (capacity_ - 1)];
        first_ += count;
        size_.store(size - count, std::memory_order_relaxed);
        return count;
    }
    /// A hint without the lock; exact for whom a fence orders after the push.
    [[nodiscard]] size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

  private:
    void grow() {
        const size_t larger = capacity_ == 0 ? 256 : 2 * capacity_;
        auto ring = std::make_unique<Task*[]>(larger);
        for (size_t i = 0; i < capacity_; ++i) ring[i] = ring_[(first_ + i) & (capacity_ - 1)];
        ring_ = std::move(ring);
        capacity_ = larger;
        first_ = 0;
    }

    ShortLock lock_;  // for all below
    size_t first_ = 0, capacity_ = 0;
    std::atomic<size_t> size_{0};  // read without the lock, as a hint
    std::unique_ptr<Task*[]> ring_;
};

}  // namespace heddle
