// ReadyQueue: tasks of one thread that could run; the thread itself takes the newest, others the oldest.
//
// Its owner pushes and pops at one end, so that it goes on with what is in its caches; a thief takes half of
// it from the other end, where the largest pieces of work lie, and leaves fine tasks to their owner
// otherwise. A short lock makes each of these one step, and favours the owner, who then needs no locked
// instruction for it (cores/biased_lock.hpp); a thief that takes many pays once. TaskQueue is what there is
// to it where nobody is the owner.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

#include "cores/biased_lock.hpp"
#include "tasks/task.hpp"

namespace heddle {

/// Any thread.
template <class Lock>
class alignas(64) TaskQueue {
  public:
    static constexpr size_t kMostStolen = 32;

    /// As the lock is made.
    template <class... Arguments>
    explicit TaskQueue(Arguments... arguments) : lock_(arguments...) {}

    /// Throws std::bad_alloc where the queue cannot grow; the task is not in it then.
    void push(Task& task) {
        const std::lock_guard guard(lock_);
        add(task);
    }
    /// The newest, or null.
    [[nodiscard]] Task* pop() noexcept {
        if (size() == 0) return nullptr;
        const std::lock_guard guard(lock_);
        return take_newest();
    }
    /// The oldest half, at most `most`, which is no more than kMostStolen; returns how many.
    [[nodiscard]] size_t steal(Task** tasks, size_t most = kMostStolen) noexcept {
        if (size() == 0) return 0;
        const std::lock_guard guard(lock_);
        const size_t before = size();
        const size_t count = std::min((before + 1) / 2, most);
        for (size_t i = 0; i < count; ++i) tasks[i] = ring_[(first_ + i) & (capacity_ - 1)];
        first_ += count;
        size_.store(before - count, std::memory_order_relaxed);
        return count;
    }
    /// A hint without the lock; exact for whom a fence orders after the push.
    [[nodiscard]] size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

  protected:
    // With the lock.
    void add(Task& task) {
        if (!add_if_there_is_room(task)) {
            grow();
            (void)add_if_there_is_room(task);
        }
    }
    [[nodiscard]] bool add_if_there_is_room(Task& task) noexcept {
        const size_t count = size();
        if (count == capacity_) return false;
        ring_[(first_ + count) & (capacity_ - 1)] = &task;
        size_.store(count + 1, std::memory_order_relaxed);
        return true;
    }
    [[nodiscard]] Task* take_newest() noexcept {
        const size_t count = size();
        if (count == 0) return nullptr;
        size_.store(count - 1, std::memory_order_relaxed);
        return ring_[(first_ + count - 1) & (capacity_ - 1)];
    }

    Lock lock_;  // for all below

  private:
    [[gnu::noinline]] void grow() {
        const size_t larger = capacity_ == 0 ? 256 : 2 * capacity_;
        auto ring = std::make_unique<Task*[]>(larger);
        for (size_t i = 0; i < capacity_; ++i) ring[i] = ring_[(first_ + i) & (capacity_ - 1)];
        ring_ = std::move(ring);
        capacity_ = larger;
        first_ = 0;
    }

    size_t first_ = 0, capacity_ = 0;
    std::atomic<size_t> size_{0};  // read without the lock, as a hint
    std::unique_ptr<Task*[]> ring_;
};

/// With an owner: one thread at a time.
class ReadyQueue : public TaskQueue<BiasedLock> {
  public:
    /// `streak`: the owner is favoured after so many steps without a thief in between; of tasks that are
    /// worth being stolen it seldom is.
    explicit ReadyQueue(uint32_t streak = BiasedLock::kLongStreak) : TaskQueue(streak) {}

    /// push() and pop() by the owner.
    void push_own(Task& task) {
        if (!push_favoured(task)) push_in_turn(task);
    }
    /// push_own() where it costs next to nothing; else false, and the task is not in it.
    [[nodiscard]] bool push_favoured(Task& task) noexcept {
        if (!lock_.enter_favoured(owner_)) return false;
        const bool there_was_room = add_if_there_is_room(task);
        BiasedLock::leave_favoured(owner_);
        return there_was_room;
    }
    [[nodiscard]] Task* pop_own() noexcept {
        if (size() == 0) return nullptr;
        if (!lock_.enter_favoured(owner_)) [[unlikely]]
            return pop_in_turn();
        Task* const task = take_newest();
        BiasedLock::leave_favoured(owner_);
        return task;
    }

  private:
    // Not inlined, so that what is usual saves no registers for them.
    [[gnu::noinline]] void push_in_turn(Task& task) {
        lock_.lock(owner_);
        const std::lock_guard guard(lock_, std::adopt_lock);
        add(task);
    }
    [[nodiscard, gnu::noinline]] Task* pop_in_turn() noexcept {
        lock_.lock(owner_);
        const std::lock_guard guard(lock_, std::adopt_lock);
        return take_newest();
    }

    BiasedLock::Key owner_;
};

}  // namespace heddle
