// TbbEngine: tasks as tasks of oneTBB, in an arena of its own.
//
// The graph is heddle's. A task that becomes ready on a thread of the arena is spawned there, for that thread
// or a thief; those that come from elsewhere lie in a queue, which a task of the arena, the call, serves: it
// runs them one by one and looks a little longer for more, for to be called costs more than a fine task.
// oneTBB decides which thread does what; a thread has a seat, and with it a CPU, while it is in the arena.
//
// A task that waits is paused (TaskFlows), and its thread goes back to oneTBB; one that was woken goes on in
// a call. (A task that oneTBB suspends keeps its thread in the arena: docs/ENGINES.md.) Threads outside the
// arena sleep in wait_until(). Priorities, which tasks of oneTBB do not have, are a heap: while something is
// in it, all that becomes ready goes there.
#pragma once

#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/task_scheduler_observer.h>

#include <condition_variable>
#include <mutex>

#include "base/clock.hpp"
#include "engines/flows/task_flows.hpp"
#include "engines/native/fine_tasks.hpp"
#include "engines/native/priority_queue.hpp"
#include "engines/seats/seats.hpp"
#include "engines/tbb/allowed_threads.hpp"
#include "tasks/event_count.hpp"
#include "tasks/ready_queue.hpp"

namespace heddle {

class TbbEngine final : public Engine {
  public:
    explicit TbbEngine(const EngineOptions& options);
    ~TbbEngine() noexcept override;

    void ready(Lane& lane, Task& task) override;
    void wait_until(Lane& lane, const std::function<bool()>& reached) override;
    void notify() override { news_.notify(); }
    bool help(Lane& lane, uint64_t wanted) noexcept override;
    void services_arrived() override;
    [[nodiscard]] bool suspends() const override { return true; }
    void suspend(Announcement publish) override;

  private:
    /// Tells of threads that come to the arena and leave it.
    class Observer final : public tbb::task_scheduler_observer {
      public:
        Observer(TbbEngine& engine, tbb::task_arena& arena)
            : tbb::task_scheduler_observer(arena), engine_(engine) {}
        void on_scheduler_entry(bool worker) override;
        void on_scheduler_exit(bool worker) override;

      private:
        TbbEngine& engine_;
    };
    /// Of the calling thread. Never inlined: what is thread-local is looked up anew after a pause.
    struct Here;
    struct Entered;
    [[nodiscard, gnu::noinline]] static Here& here() noexcept;

    [[nodiscard]] bool in_arena() const noexcept;
    void spawn(Task* task);
    void call() noexcept;
    /// One task of the arena: runs `task`, or with null the first of the heap, and what follows from it.
    void work(Task* task);
    void come_home(Task* task) noexcept;
    void run_chain(Lane& lane, Task* task);
    void go_on_with_woken(Lane& lane);
    [[nodiscard]] TaskFlows::Outcome resume(Lane& lane);
    [[nodiscard]] TaskFlows::Outcome run(Lane& lane, Task& task) noexcept;
    [[nodiscard]] Task* after(Lane& lane, const TaskFlows::Outcome& outcome) noexcept;
    void sit_idle(Seats::Seat& seat);
    /// A thread naps where tasks are so fine that another does them as fast without it, as Pace says.
    void keep_pace();
    void nap();
    void end_naps() noexcept;
    /// What lies in the queues, until there is nothing more or something else has its turn.
    void serve(Lane& lane);
    /// Who is called looks at the queues after this.
    void answer() noexcept;
    [[nodiscard]] Task* fetch() noexcept;
    /// Looks a little longer. False: nothing came, and whoever brings something calls again.
    [[nodiscard]] bool linger() noexcept;
    [[nodiscard]] bool has_queued() const noexcept {
        return flows_.any_woken() || !urgent_.empty() || incoming_.size() > 0;
    }
    [[nodiscard]] Task* most_urgent(Task* continuation) noexcept;
    void keep(Lane& lane, Task& task) noexcept;
    void poll() noexcept;
    [[nodiscard]] bool come_again() noexcept;

    EngineHost& host_;
    const int workers_;
    const uint64_t id_;  // of this engine; an address may be another's later
    Seats seats_;
    PriorityQueue urgent_;
    TaskQueue<ShortLock> incoming_;
    /// A call is on its way, or lingers: it will see what was brought before this was looked at. Between the
    /// two there is a full fence, and one between the clearing and the look at the queues.
    std::atomic<bool> called_{false};

    // Threads that wait outside the arena: counted before they look for the last time, with a full fence; who
    // brings something to be seen looks here after another.
    EventCount news_;
    FineTasks fine_;
    std::atomic<int> napping_{0};       // threads that nap, each for a bounded time, and never all
    std::atomic<uint32_t> coarse_{0};   // a futex: rises where tasks turn out to be coarse
    std::atomic<bool> polling_{false};  // a task of the arena calls the polling services
    std::atomic<bool> stop_{false};

    std::mutex mutex_;  // for inside_
    int inside_ = 0;    // threads in the arena
    std::condition_variable left_;

    AllowedThreads threads_;
    TaskFlows flows_;
    tbb::task_group group_;
    tbb::task_arena arena_;
    Observer observer_;
};

}  // namespace heddle
