// NativeEngine: heddle's own. Workers of a WorkerPool, each with a queue, steal from each other; a task that
// ends goes on at once with one that waited for it; a task that waits is paused and costs its stack alone.
//
// Threads that wait for tasks run them too: with n workers the pool has n - 1, and with one worker either its
// thread or one that waits is at work, never both. Who has nothing to do sleeps, but for polling services:
// while there are some, one worker calls them in growing intervals.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "base/asymmetric_fence.hpp"
#include "cores/worker_pool.hpp"
#include "engines/native/flow.hpp"
#include "engines/native/priority_queue.hpp"
#include "tasks/engine.hpp"
#include "tasks/event_count.hpp"

namespace heddle {

class NativeEngine final : public Engine, private WorkSource {
  public:
    explicit NativeEngine(const EngineOptions& options);
    ~NativeEngine() override;

    void ready(Lane& lane, Task& task) override;
    void wait_until(Lane& lane, const std::function<bool()>& reached) override;
    void notify() override;
    bool help(Lane& lane, uint64_t wanted) noexcept override;
    [[nodiscard]] bool looks_at_line() const override { return true; }
    void line_grew() noexcept override { announce(); }
    [[nodiscard]] bool sleeps() const override { return pool_.workers() == 0; }
    [[nodiscard]] bool goes_near() const override { return true; }
    void suspend(Announcement publish) override;
    void services_arrived() override;

    /// The task of a paused flow was woken. Any thread.
    void resume(Flow& flow) noexcept;

  private:
    bool run_one(Worker& worker) override;
    bool may_have_work() noexcept override;

    // Where tasks come from.
    [[nodiscard]] Task* find(Lane& lane) noexcept {
        Task* const task = next(lane);
        return task != nullptr ? task : find_elsewhere(lane);
    }
    [[nodiscard]] Task* next(Lane& lane) noexcept {
        Task* const task = urgent_.pop(false);
        return task != nullptr ? task : lane.queue.pop_own();
    }
    [[nodiscard]] Task* find_elsewhere(Lane& lane) noexcept;
    [[nodiscard]] Task* steal(Lane& lane) noexcept;
    [[nodiscard]] Task* from_line(Lane& lane) noexcept;
    /// The first to run after a task that made `continuation` possible, if any. It has to be run then: in the
    /// heap it would lose its place.
    [[nodiscard]] Task* find_after(Lane& lane, Task* continuation) noexcept {
        if (continuation == nullptr) return find(lane);
        Task* const urgent = urgent_.pop(false);
        if (urgent == nullptr) return continuation;
        keep(lane, *continuation);
        return urgent;
    }
    [[nodiscard]] Lane& lane_for(Lane& own, const Placement& placement) noexcept;
    /// Where it belongs: in the heap, or the queue of a lane.
    [[gnu::noinline]] void put(Lane& lane, Task& task);
    /// In the lane's queue or back in line, for later.
    void keep(Lane& lane, Task& task) noexcept;
    /// Tells somebody who sleeps that there is something to do.
    void announce() noexcept {
        light_fence();
        if (sleepers_.load(std::memory_order_relaxed) == 0) [[likely]]
            return pool_.work_arrived();
        wake_sleeper();
    }
    [[gnu::noinline]] void wake_sleeper() noexcept;
    [[nodiscard]] bool help_in_task(Lane& lane) noexcept;
    /// As wait_until(), for a while, where the thread is.
    bool help_here(Lane& lane, int budget);
    /// A worker that has run tasks naps where it is of no use, as Pace says.
    void keep_pace(Lane& lane, Worker& worker);
    void nap(Lane& lane, Worker& worker);
    void end_naps() noexcept;
    /// Looks a little longer for work, for to be woken takes longer than that. True: there may be some.
    template <class Leave>
    bool linger(const Leave& leave);
    void tell_of_free_seat() noexcept;
    void sleep(const std::function<bool()>& reached, Time until);
    bool poll(const std::function<bool()>& leave);
    [[nodiscard]] bool has_tasks() noexcept;

    // Flows (native_flows.cpp).
    [[nodiscard]] FlowsOfLane& flows(Lane& lane) {
        FlowsOfLane* const here = flows_[lane.index].get();
        return here != nullptr ? *here : make_flows(lane);
    }
    [[gnu::noinline]] FlowsOfLane& make_flows(Lane& lane);
    /// Of the calling thread; null where it is in none of the flows.
    [[nodiscard]] FlowsOfLane* flows_in_use() noexcept;
    /// Runs tasks in a flow until there is none at hand, the budget is spent or the worker is to leave. True:
    /// there was one.
    bool enter(Lane& lane, Worker* worker, int budget) noexcept;
    /// Null where there is no memory for one.
    [[nodiscard]] Flow* first_flow(Lane& lane, FlowsOfLane& here) noexcept;
    void found_work(FlowsOfLane& here) noexcept;
    void go_on_with(Lane& lane, FlowsOfLane& here, Flow& resumed) noexcept;
    void run_on_own_stack(Lane& lane, FlowsOfLane& here) noexcept;
    static void run_flow(void* flow);
    void loop(Flow& self);
    [[nodiscard]] Flow& take_flow(FlowsOfLane& here, bool must);
    [[nodiscard]] static Flow& take_resting(FlowsOfLane& here) noexcept;
    [[nodiscard]] Flow& make_flow(FlowsOfLane& here);
    [[nodiscard]] bool may_go_on(FlowsOfLane& here) noexcept;
    /// There is one for the next pause, or memory for it.
    [[nodiscard]] bool has_spare(FlowsOfLane& here) noexcept;
    void reserve(FlowsOfLane& here) noexcept;
    void rest(FlowsOfLane& here, Flow& flow) noexcept;

    EngineHost& host_;
    const CpuSet cpus_;
    const bool bind_;
    const bool callers_work_;
    const bool one_at_a_time_;
    PriorityQueue urgent_;
    StackPool stacks_;
    const FloatModes modes_ = FloatModes::current();  ///< the program's, where it made the engine
    std::array<std::unique_ptr<FlowsOfLane>, LaneTable::kMost>
        flows_;  // each made and used by its lane's thread
    ResumedFlows resumed_;
    /// With one worker: it is taken by the thread that may run tasks.
    std::atomic<bool> seat_taken_{false};
    std::atomic<bool> polling_{false};  ///< a thread is in poll()
    /// Threads in resume() that are in no flow, and may have nothing else that keeps the engine alive; those
    /// in a flow use it afterwards as well.
    std::atomic<int> resuming_{0};

    FineTasks fine_;
    /// Workers that nap, each for a bounded time; ended early where tasks turn out to be coarse.
    std::atomic<int> napping_{0};
    std::atomic<uint32_t> coarse_{0};  // a futex

    /// Threads that sleep here, or are about to: counted before they look for the last time. Who makes
    /// something to be seen looks here afterwards; between the two a heavy fence there and a light one here.
    alignas(64) std::atomic<int> sleepers_{0};
    std::atomic<uint32_t> news_{0};  // a futex: rises with each thing to be seen while somebody sleeps
    EventCount onlookers_;           ///< threads that wait and run no tasks

    WorkerPool pool_;  // last: its threads use all of the above
};

}  // namespace heddle
