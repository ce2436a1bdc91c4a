// TaskFlows: runs tasks so that they may pause, for engines whose runtimes can end a task later than its
// function, but cannot suspend it.
//
// Each task runs on a fiber of the engine's. Where it never pauses that is a switch there and one back; one
// that pauses keeps its fiber, and the thread goes back to the runtime. Whoever is told that a flow was woken
// calls resume() from a thread that may run tasks.
//
// One for an engine, which compiles it into its plug-in. Any thread may run, resume and wake. No task is left
// when it is destroyed.
#pragma once

#include <array>
#include <atomic>
#include <functional>

#include "cores/short_lock.hpp"
#include "fibers/fiber.hpp"
#include "fibers/stack_pool.hpp"
#include "tasks/engine.hpp"

namespace heddle {

class TaskFlows {
  public:
    /// What became of a task. `token` is what the engine gave with it.
    struct Outcome {
        bool ended = false;
        bool paused = false;  ///< in between
        void* token = nullptr;
        Task* continuation = nullptr;  ///< can run now on this thread, as EngineHost::run() says
    };

    /// Asked after each task, with its continuation, if any, and the lane of the thread that it ended on:
    /// what the flow is to run then. Null: nothing, and the thread is back where it entered the flow.
    using Next = std::function<Task*(Lane&, Task* continuation)>;

    /// `woken` is called by whoever wakes a flow, when resume() will find it; it must not throw. Without
    /// `next` a flow runs one task, and its continuation is in the outcome.
    TaskFlows(EngineHost& host, size_t stack_bytes, std::function<void()> woken, Next next = nullptr);
    ~TaskFlows();
    TaskFlows(const TaskFlows&) = delete;
    TaskFlows& operator=(const TaskFlows&) = delete;

    // `lane` is the calling thread's.
    /// Runs a task, here and now. Throws kLimit where there is no memory for a stack, and has not run it.
    Outcome run(Lane& lane, Task& task, void* token);
    /// Goes on with a task that was woken, if there is one.
    Outcome resume(Lane& lane);
    /// The same with one that was taken (take_woken()), or told (suspend()) and that nobody else wakes.
    Outcome resume(Lane& lane, Waiter& paused) { return enter(lane, static_cast<Flow&>(paused)); }
    /// One that was woken, to be resumed, or null.
    [[nodiscard]] Waiter* take_woken() noexcept;
    [[nodiscard]] bool any_woken() const noexcept { return any_woken_.load(std::memory_order_seq_cst); }

    /// In a task that runs here. Before it pauses for the first time `first(token)` is called.
    void suspend(Announcement publish, void (*first)(void* token));
    /// Those that each task begins with.
    [[nodiscard]] const FloatModes& modes() const noexcept { return modes_; }
    /// Returns when nobody is left in `woken` who woke a task that has ended since.
    void wait_for_wakers() const noexcept;

  private:
    /// On the stack of who runs a flow.
    struct Stay {
        Fiber home;
        bool ended = false;
    };
    struct Flow final : Waiter {
        Flow(TaskFlows& its_owner, Stack& its_stack)
            : owner(its_owner), stack(its_stack), fiber(its_stack.span(), &TaskFlows::main, this) {}
        void wake() noexcept override { owner.wake(*this); }

        TaskFlows& owner;
        Stack& stack;
        Fiber fiber;
        Stay* stay = nullptr;
        Task* task = nullptr;
        Outcome outcome;
        Flow* next = nullptr;  ///< in the one list that it is in
    };
    /// Of the calling thread. Never inlined: it must be looked up anew after a pause.
    [[nodiscard, gnu::noinline]] static Flow*& current() noexcept;

    static void main(void* flow);
    Outcome enter(Lane& lane, Flow& flow);
    [[nodiscard]] Flow& take(Lane& lane);
    void rest(Lane& lane, Flow& flow) noexcept;
    void end(Flow& flow) noexcept;  // with the lock, or when nobody else is there
    void wake(Flow& flow) noexcept;

    EngineHost& host_;
    const std::function<void()> woken_callback_;
    const Next next_;
    const FloatModes modes_ = FloatModes::current();  ///< the program's, where it made the engine
    StackPool pool_;
    std::array<Flow*, LaneTable::kMost> spare_{};  ///< for the next task; each its lane's

    ShortLock lock_;  // for all below
    StackCache stacks_{pool_};
    Flow* resting_ = nullptr;
    int resting_count_ = 0;
    Flow *first_woken_ = nullptr, *last_woken_ = nullptr;
    std::atomic<bool> any_woken_{false};  // read without the lock; seq_cst, with who sleeps for want of work
    // Threads in wake(), which may have nothing else that keeps the engine alive.
    std::atomic<int> waking_{0};
};

}  // namespace heddle
