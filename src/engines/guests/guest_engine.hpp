// GuestEngine: heddle's graph on threads of a runtime that has tasks of its own, oneTBB or OpenMP.
//
// A thread goes on at once with one of the tasks that it made possible. The others lie in its queue, of which
// it takes the newest and others the oldest. What comes from elsewhere lies in one more queue or stands in
// the graph's line. Who is to come to the queues is the runtime's to say: a task of the runtime, the call,
// serves them one by one, and looks a little longer for more, for to be called costs more than a fine task.
// Each call that finds more than it takes makes the next. A thread has a seat, and with it a CPU, while it
// runs tasks. Priorities are a heap: while something is in it, all that becomes ready goes there.
//
// Where tasks are so fine that one thread does them as fast as many, the runtime's threads nap; and a thread
// of the program's that waits, or is far ahead with its insertions, is their substitute: it serves where a
// seat is free, and what it inserts need not go elsewhere. One such thread at a time. It leaves when a task
// was coarse.
//
// A task that waits is paused (TaskFlows), and its thread goes back to the runtime; one that was woken goes
// on in a call.
#pragma once

#include <atomic>

#include "base/clock.hpp"
#include "engines/flows/task_flows.hpp"
#include "engines/native/fine_tasks.hpp"
#include "engines/native/pace.hpp"
#include "engines/native/priority_queue.hpp"
#include "engines/seats/seats.hpp"
#include "tasks/event_count.hpp"
#include "tasks/ready_queue.hpp"

namespace heddle {

/// One for an engine, which compiles it into its plug-in.
class GuestEngine : public Engine {
  public:
    ~GuestEngine() override = default;

    void ready(Lane& lane, Task& task) override;
    void wait_until(Lane& lane, const std::function<bool()>& reached) override;
    void notify() override { news_.notify(); }
    bool help(Lane& lane, uint64_t wanted) noexcept override;
    [[nodiscard]] bool looks_at_line() const override { return true; }
    void line_grew() noexcept override { call(); }
    void services_arrived() override;
    void suspend(Announcement publish) override;

  protected:
    explicit GuestEngine(const EngineOptions& options);

    // What the runtime has to do.
    /// Has answer_call(), or poll(), called on one of its threads, behind what that has to do. Any thread.
    /// Throws.
    virtual void make_call() = 0;
    virtual void make_poll() = 0;
    /// Calls `serve`; what tasks say there in the runtime's words means the same as on its threads.
    virtual void as_on_its_threads(const std::function<void()>& serve) = 0;
    /// Which of the runtime's constructs the calling thread is in. Where that is another one than around the
    /// task, what is on the stack belongs to the thread.
    [[nodiscard]] virtual uintptr_t construct_here() const noexcept = 0;
    [[nodiscard]] virtual const char* refusal_of_pause() const noexcept = 0;
    /// The thread's CPU was asked back after a task.
    virtual void lost_seat(Seats::Seat&) noexcept {}

    // For its threads.
    /// The calling thread is one from now on; its seat.
    Seats::Seat& arrive();
    void depart() noexcept;
    /// It is one. In a task of ours, it may be elsewhere in the runtime for now.
    [[nodiscard]] bool has_arrived() const noexcept;
    /// And is where the runtime gave it something of ours, outside of all tasks.
    [[nodiscard]] bool is_between_tasks() const noexcept;
    /// Runs what lies in the queues, and what follows from it.
    void answer_call() noexcept;
    /// Calls the services, and comes again behind what was called meanwhile, as long as there are some.
    void poll() noexcept;
    /// Somebody is on the way to the queues, or will look at them soon.
    [[nodiscard]] bool called() const noexcept { return called_.load(std::memory_order_relaxed); }

    /// To be called first by each destructor of what derives from it: there are calls left, and no tasks.
    void stop() noexcept;
    [[nodiscard]] bool stops() const noexcept { return stop_.load(); }

    const EngineOptions options_;
    Seats seats_;

  private:
    /// After so many tasks a thread looks whether it is of use; so few tell, where it napped or just came.
    static constexpr int kLookEvery = 64, kProbe = 4;
    /// Who finds no task looks for more for so long.
    static constexpr Nanoseconds kLinger = std::chrono::microseconds(20);

    /// Of the calling thread. Never inlined: what is thread-local is looked up anew after a pause.
    struct Here;
    struct Entered;
    class Substitute;
    [[nodiscard, gnu::noinline]] static Here& here() noexcept;

    [[nodiscard]] bool has_queued() const noexcept;
    void call() noexcept;
    void come_home() noexcept;
    /// Runs the task, and what this thread comes to from there.
    void run(Lane& lane, Task& task) noexcept;
    /// The same from one that was woken.
    void resume(Lane& lane, Waiter& woken) noexcept;
    static void count(Lane& lane) noexcept;
    /// What this thread runs after a task that has ended.
    [[nodiscard]] Task* next(Lane& lane, Task* continuation) noexcept;
    [[nodiscard]] Task* most_urgent(Lane& lane, Task* continuation) noexcept;
    /// For later, by whomever.
    void keep(Lane& lane, Task& task) noexcept;
    /// What lies in the queues, until there is nothing more or something else has its turn.
    void serve(Lane& lane) noexcept;
    /// One of these, and what follows from it. False: there was none.
    bool serve_one(Lane& lane) noexcept;
    [[nodiscard]] Task* fetch(Lane& lane) noexcept;
    [[nodiscard]] Task* find(Lane& lane) noexcept;
    [[nodiscard]] Task* from_line(Lane& lane) noexcept;
    [[nodiscard]] Task* steal(Lane& lane) noexcept;
    /// Who is called looks at the queues after this.
    void answer() noexcept;
    /// Looks a little longer. False: nothing came, and whoever brings something calls again.
    [[nodiscard]] bool linger() noexcept;
    [[nodiscard]] bool help_in_task(Lane& lane) noexcept;
    [[nodiscard]] bool come_again() noexcept;
    /// Sleeps for so long, or until there is a call that was not there before.
    void nap_between_polls(Nanoseconds longest, bool called_before) noexcept;

    // Threads of the program's (substitute.cpp).
    /// Runs fine tasks, while there are some and a seat, and `more` is true. False: none.
    bool stand_in(Lane& lane, const std::function<bool()>& more) noexcept;
    bool serve_as_substitute(Lane& lane, const std::function<bool()>& more) noexcept;
    /// So many, at most. False: they were coarse, or there are some that it cannot have.
    [[nodiscard]] bool serve_some(Lane& lane, int most) noexcept;

    /// A thread naps where tasks are so fine that another does them as fast without it, as Pace says.
    [[nodiscard]] bool is_to_nap() noexcept;
    void nap() noexcept;
    [[nodiscard]] Pace::Look look() noexcept;
    /// Tasks that take less are not worth being handed over: one that is passes a queue and perhaps the
    /// runtime, beside what it does on `native`.
    [[nodiscard]] Nanoseconds fine() const noexcept { return 2 * fine_.limit(); }
    void tasks_are_coarse() noexcept;

    EngineHost& host_;
    EventCount news_;    // threads that wait outside
    const uint64_t id_;  // of this engine; an address may be another's later
    PriorityQueue urgent_;
    TaskQueue<ShortLock> incoming_;
    /// A call is on its way, or lingers or naps: it will see what was brought before this was looked at.
    /// Between the two there is a full fence, and one between the clearing and the look at the queues.
    alignas(64) std::atomic<bool> called_{false};
    std::atomic<bool> call_failed_{false};  ///< for want of memory: who waits tries again
    std::atomic<bool> has_substitute_{false};

    FineTasks fine_;
    std::atomic<bool> are_fine_{false};   // the last that somebody looked at
    std::atomic<int> napping_{0};         // threads that nap, each for a bounded time
    std::atomic<uint32_t> coarse_{0};     // a futex: rises where tasks turn out to be coarse
    std::atomic<bool> polling_{false};    // a poll is on its way, or at it
    std::atomic<bool> poll_naps_{false};  // one looks at called_ afterwards
    std::atomic<uint32_t> poll_bell_{0};  // a futex: rises with each call that finds it so
    std::atomic<bool> stop_{false};
    TaskFlows flows_;
};

}  // namespace heddle
