// Flow: a fiber that runs tasks one after the other, for whichever thread it is on.
//
// A task runs on its worker's flow as a plain call and costs nothing for it. Only when it pauses does it keep
// the flow it is on: the thread goes on with another one, and the paused one continues where somebody finds
// it in ResumedFlows. So there are as many flows as threads at work and tasks paused. NativeEngine owns all
// of them.
#pragma once

#include <atomic>
#include <mutex>

#include "cores/biased_lock.hpp"
#include "cores/worker_pool.hpp"
#include "engines/native/fine_tasks.hpp"
#include "engines/native/pace.hpp"
#include "fibers/fiber.hpp"
#include "fibers/stack_pool.hpp"
#include "tasks/waiter.hpp"

namespace heddle {

class NativeEngine;

struct Flow final : Waiter {
    Flow(NativeEngine& its_engine, Stack& its_stack, Fiber::Entry entry)
        : engine(its_engine), stack(its_stack), fiber(its_stack.span(), entry, this) {}
    void wake() noexcept override;

    NativeEngine& engine;
    Stack& stack;
    Fiber fiber;
    Flow* next = nullptr;  ///< in the one list that it is in
};

/// Flows whose tasks were woken, first come first served. Any thread. A thread in whose flows tasks wake each
/// other again and again, and that has a key, needs no locked instruction for it.
class ResumedFlows {
  public:
    explicit ResumedFlows(uint32_t streak = BiasedLock::kLongStreak) : lock_(streak) {}

    void push(Flow& flow, BiasedLock::Key& key) noexcept {
        const BiasedLock::Guard guard(lock_, key);
        append(flow);
    }
    void push(Flow& flow) noexcept {
        const std::lock_guard guard(lock_);
        append(flow);
    }
    /// Null where there is none.
    [[nodiscard]] Flow* pop(BiasedLock::Key& key) noexcept {
        if (empty()) return nullptr;
        const BiasedLock::Guard guard(lock_, key);
        Flow* flow = first_;
        if (flow == nullptr) return nullptr;
        first_ = flow->next;
        if (first_ == nullptr) last_ = nullptr;
        any_.store(first_ != nullptr, std::memory_order_relaxed);
        return flow;
    }
    /// A hint; exact for whom a fence orders after the push.
    [[nodiscard]] bool empty() const noexcept { return !any_.load(std::memory_order_relaxed); }

  private:
    void append(Flow& flow) noexcept {
        flow.next = nullptr;
        (last_ == nullptr ? first_ : last_->next) = &flow;
        last_ = &flow;
        any_.store(true, std::memory_order_relaxed);
    }

    BiasedLock lock_;  // for all below
    Flow *first_ = nullptr, *last_ = nullptr;
    std::atomic<bool> any_{false};  // read without the lock, as a hint
};

/// What a lane has of its own in the native engine. Only the lane's thread uses it.
struct FlowsOfLane {
    explicit FlowsOfLane(StackPool& pool) : stacks(pool) {}

    StackCache stacks;
    BiasedLock::Key resumed;  ///< for ResumedFlows
    Flow* resting = nullptr;  ///< between two tasks; by next
    uint32_t resting_count = 0;
    bool reserved = false;    ///< some were made for when there is no memory
    Flow* current = nullptr;  ///< runs now
    Fiber* home = nullptr;    ///< the thread's own fiber, while it is in a flow
    // Of the pool's worker whose lane it is:
    Pace pace;
    FineTasks::Watch watch;
    // Of that worker's latest look at the line:
    bool spared = false;  ///< others do as well without it
    bool of_use = false;  ///< they do not
    int nested = 0;       ///< stays in flows that began in a task
    // Of the present stay in flows:
    Worker* worker = nullptr;  ///< null for a thread that waits
    /// No task begins that there is no memory to pause: the thread has others to insert, which that one may
    /// wait for.
    bool has_more_to_insert = false;
    int budget = 0;      ///< so many tasks, then home
    bool found = false;  ///< there was a task
};

}  // namespace heddle
