// NativeEngine: heddle's own. Workers of a WorkerPool, each with a queue, steal from each other; a task that
// ends goes on at once with one that waited for it.
//
// Threads that wait for tasks run them too: with n workers the pool has n - 1, and with one worker either its
// thread or one that waits is at work, never both. Who has nothing to do sleeps.
#pragma once

#include <atomic>
#include <string>

#include "cores/worker_pool.hpp"
#include "engines/native/priority_queue.hpp"
#include "tasks/engine.hpp"

namespace heddle {

class NativeEngine final : public Engine, private WorkSource {
  public:
    explicit NativeEngine(const EngineOptions& options);
    ~NativeEngine() override;

    void ready(Lane& lane, Task& task) override;
    void wait_until(Lane& lane, const std::function<bool()>& reached) override;
    void notify() override;
    bool help(Lane& lane) override;

  private:
    bool run_one(Worker& worker) override;
    bool may_have_work() noexcept override;

    [[nodiscard]] Task* find(Lane& lane) noexcept;
    [[nodiscard]] Task* next(Lane& lane) noexcept;
    [[nodiscard]] Task* steal(Lane& lane) noexcept;
    [[nodiscard]] Task* after(Lane& lane, Task* continuation) noexcept;
    /// In the lane's queue, for later.
    void keep(Lane& lane, Task& task) noexcept;
    /// Tells somebody who sleeps that there is a task.
    void announce();
    void sleep(const std::function<bool()>& reached);

    EngineHost& host_;
    const bool one_at_a_time_;
    PriorityQueue urgent_;
    /// With one worker: it is taken by the thread that may run tasks.
    std::atomic<bool> seat_taken_{false};

    /// Threads in wait_until() that sleep, or are about to: counted before they look for the last time. Who
    /// makes something to be seen looks here afterwards; a full fence on both sides.
    alignas(64) std::atomic<int> sleepers_{0};
    std::atomic<uint32_t> news_{0};  // a futex: rises with each thing to be seen while somebody sleeps

    WorkerPool pool_;  // last: its threads use all of the above
};

}  // namespace heddle
