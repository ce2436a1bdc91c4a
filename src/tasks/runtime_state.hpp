// RuntimeState, SequenceState: what stands behind Runtime and Sequence.
//
// A RuntimeState holds the parts (memory, graph, failures, lanes, engine) and the way of a task through them:
// Insertion -> Graph -> Engine -> run() -> Graph. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "cores/component_cpus.hpp"
#include "heddle/machine.hpp"
#include "tasks/dag_file.hpp"
#include "tasks/engine.hpp"
#include "tasks/failures.hpp"
#include "tasks/frame.hpp"
#include "tasks/graph.hpp"
#include "tasks/inner_wait.hpp"
#include "tasks/kept_data.hpp"
#include "tasks/lane.hpp"
#include "tasks/outer_affinity.hpp"
#include "tasks/reactor.hpp"
#include "tasks/task_log.hpp"
#include "tasks/task_memory.hpp"
#include "tasks/task_place.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle::detail {

struct SequenceState : std::enable_shared_from_this<SequenceState> {
    SequenceState(RuntimeState& its_runtime, std::shared_ptr<Domain> its_domain)
        : runtime(its_runtime), domain(std::move(its_domain)) {}

    RuntimeState& runtime;
    std::shared_ptr<Domain> domain;
    /// Tasks inserted: those that stood in line, counted under the lock of its end; others of the thread that
    /// has the lane `inserter`, which it counts alone; and all others. And those that ended and were counted.
    /// `finished` is written last, with release: who reads it, then the others, and finds as many sees all
    /// that the tasks wrote, and nobody of them touches the sequence any more.
    alignas(64) std::atomic<uint64_t> stood{0};
    std::atomic<uint64_t> of_inserter{0}, others{0};
    std::atomic<const Lane*> inserter{nullptr};  ///< who was the first; for good
    alignas(64) std::atomic<uint64_t> finished{0};
    /// Counts in a task that did not stand in line; `lane` is the calling thread's. Returns how many did so
    /// before it, as far as the same counter knows.
    uint64_t count_in(const Lane& lane) noexcept {
        const Lane* who = inserter.load(std::memory_order_relaxed);
        if (who == nullptr && inserter.compare_exchange_strong(who, &lane, std::memory_order_relaxed))
            who = &lane;
        if (who != &lane) return others.fetch_add(1, std::memory_order_relaxed);
        const uint64_t before = of_inserter.load(std::memory_order_relaxed);
        of_inserter.store(before + 1, std::memory_order_relaxed);
        return before;
    }
    /// It was not inserted after all.
    void count_out(const Lane& lane) noexcept {
        if (inserter.load(std::memory_order_relaxed) != &lane)
            others.fetch_sub(1, std::memory_order_relaxed);
        else
            of_inserter.store(of_inserter.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    }
    InnerWait::Knot knot;
    /// Itself, where its Sequence went in one of its own tasks; until it is done.
    std::shared_ptr<SequenceState> kept;
    std::atomic<bool> has_gone{false};  ///< its Sequence: nobody inserts, and nobody else waits any more

    [[nodiscard]] uint64_t inserted() const noexcept {
        return stood.load(std::memory_order_acquire) + of_inserter.load(std::memory_order_acquire) +
               others.load(std::memory_order_acquire);
    }
    [[nodiscard]] bool done() const noexcept {
        const uint64_t ended = finished.load(std::memory_order_acquire);
        return ended == inserted();
    }
    [[nodiscard]] bool is_over() const noexcept { return has_gone.load(std::memory_order_acquire) && done(); }
};

/// Whether the task is of that sequence, or below a task that is.
[[nodiscard]] bool is_within(const Task& task, const SequenceState& sequence) noexcept;

struct RuntimeState final : EngineHost {
    /// `among`: of the CPUs in the options, those to run on until confine() names others; empty: all.
    /// `callers_work`: see EngineOptions.
    explicit RuntimeState(const RuntimeOptions& options, CpuSet among = {}, bool callers_work = true);
    ~RuntimeState();
    RuntimeState(const RuntimeState&) = delete;
    RuntimeState& operator=(const RuntimeState&) = delete;

    [[nodiscard]] Lane& lane() override { return lane_of(lanes); }
    /// Where tasks that the calling thread inserts into a new sequence are ordered.
    [[nodiscard]] std::shared_ptr<Domain> domain_here();
    /// Those below the root, of sequences that live, whose tasks have used it.
    [[nodiscard]] std::vector<std::shared_ptr<Domain>> domains_of(const DataState& data);

    /// Null where the task may run anywhere; throws as Placements::find().
    [[nodiscard]] const Placement* placement_for(const TaskOptions& options) {
        const bool anywhere = !options.cpus && options.near.kind() == Near::Kind::kNothing;
        return anywhere ? nullptr : placements.find(options, machine, cpus);
    }
    /// Counts a task in and hands it to the graph or the engine. Throws std::bad_alloc; it is not counted
    /// then.
    void commit(Lane& lane, Task& task);
    inline void commit_alone(Lane& lane, Task& task);    ///< one without data; for task_insertion.cpp
    inline void commit_ordered(Lane& lane, Task& task);  ///< one with data; the same
    /// For a task before which nothing is any more.
    void could_run(Lane& lane, Task& task) noexcept;
    Task* run(Lane*& lane, Task& task) noexcept override { return run(lane, task, false); }
    Task* run_here(Lane& lane, Task& task) noexcept override;
    void flush(Lane& lane) noexcept override;
    [[nodiscard]] uint32_t in_line() const noexcept override { return graph.in_line(); }
    [[nodiscard]] uint32_t started_in_line() const noexcept override { return graph.started_in_line(); }
    [[nodiscard]] Task* next_in_line(Lane& lane, uint32_t most) noexcept override;
    [[nodiscard]] bool put_back(Lane& lane, Task& task) noexcept override {
        return graph.put_back(lane.in_graph, task);
    }
    [[nodiscard]] LaneTable& all_lanes() noexcept override { return *lanes; }
    [[nodiscard]] PollingServices& polling_services() noexcept override { return polling; }
    bool poll() noexcept override { return polling.poll(); }
    [[nodiscard]] int nearest(const CpuSet& taken, const CpuSet& free) const override {
        return machine.nearest(taken, free, 1).first();
    }
    [[nodiscard]] TaskFrame* frame() noexcept override { return current_frame(); }
    TaskFrame* swap_frame(TaskFrame* frame) noexcept override { return exchange_frame(frame); }
    bool stay_on(const CpuSet& its_cpus, const std::function<void()>& stay) override;
    [[nodiscard]] std::unique_ptr<Engine> make_native(const EngineOptions& its_options) override {
        return find_engine("native").make(its_options);
    }

    /// The calling thread is in a task of it.
    [[nodiscard]] bool is_in_task() const noexcept {
        for (const TaskFrame* frame = current_frame(); frame != nullptr; frame = frame->below)
            if (frame->runtime == this) return true;
        return false;
    }
    void wait(SequenceState& sequence);
    /// For who cannot do without: memory may be short, and then other tasks run on top of the one that waits.
    /// Errors stay.
    void wait_out(SequenceState& sequence) noexcept;
    /// What was counted into it, and is no task of it, has ended.
    void one_ended(const std::shared_ptr<SequenceState>& sequence) noexcept;
    /// The Sequence goes: waits, and drops its errors. Where it goes in a task of its own nothing waits.
    void end(const std::shared_ptr<SequenceState>& sequence) noexcept;
    /// Until it is done: nobody else has it any more.
    void keep(const std::shared_ptr<SequenceState>& sequence) noexcept;
    void wait_all();
    /// For who waits for others and finds no memory for it. Any thread.
    static void let_others_run() noexcept;
    /// Wakes tasks that wait for it and were refused, and those for which it is done.
    void wake_refused(SequenceState& sequence) noexcept;
    /// In a thread or in a task of an engine that cannot pause it. Whoever makes `reached` true tells the
    /// engine by notify().
    void wait_until(const std::function<bool()>& reached);
    void switch_engine(std::string_view name);
    /// Tasks inserted so far, and of those the ones that have ended; a moment's changes apart. Any thread.
    [[nodiscard]] WorkCounts work() const noexcept;
    /// From now on tasks run on `among` alone, of which cpus has some. Not while the engine is switched.
    void confine(const CpuSet& among);

    /// All tasks have ended, and none has failed of which nobody was told. Any thread.
    [[nodiscard]] bool idle();
    /// No task uses these data any more.
    void forget(const DataState& data);
    void add_service(const std::string& name, PollingService service, void* data);
    void enter(const std::shared_ptr<SequenceState>& sequence);

    const Machine machine = Machine::detect();
    CpuSet wanted_cpus;  ///< by the program; empty: any
    const CpuSet makers_affinity = outer_affinity();
    const CpuSet cpus;
    const int workers;
    const size_t stack_bytes;
    const bool callers_work;
    Runtime* of_kernels = nullptr;  ///< where its tasks are kernels: itself, as they see it
    TaskMemory memory;
    Graph graph{memory};
    trace::WorkLog* const log = trace::WorkLog::of_process(machine);  ///< null: tasks are not traced
    std::unique_ptr<DagFile> dag_file = DagFile::from_environment();
    Failures failures;
    KeptData kept;
    Placements placements;
    PollingServices polling;
    Reactor reactor;
    std::shared_ptr<Domain> root;
    std::shared_ptr<LaneTable> lanes;

    const EngineFactory* factory;
    std::unique_ptr<ComponentCpus> provider;      ///< of the engine, and outlives it
    std::unique_ptr<OutsideCpus> cpus_of_engine;  ///< these, as the engine has them
    std::unique_ptr<Engine> engine;

  private:
    // Of the engine, as it says itself.
    bool own_graph_ = false, looks_at_line_ = false;

    class InEngine;
    class OneSwitch;
    /// On the stack of the task that waits.
    struct SequenceWaiter {
        const SequenceState* sequence;
        const InnerWait* wait;
        Waiter* waiter;
        SequenceWaiter* next;
    };
    [[nodiscard]] SequenceWaiter*& waiters_of(const SequenceState* sequence) noexcept;

    void order(Lane& lane, Task& task);
    void insert_into_engine(Lane& lane, Task& task);
    [[nodiscard]] bool enter_graph(Lane& lane, Task& task);
    [[nodiscard]] Task* run(Lane*& lane, Task& task, bool stays) noexcept;
    void run_special(TaskFrame& frame) noexcept;
    void run_in_place(TaskFrame& frame);
    static void await_futures(Task& task);
    void run_traced(TaskFrame& frame);
    [[nodiscard]] bool cancelled(Task& task) noexcept;
    void before_destruction(Task& task) noexcept;
    [[nodiscard]] Task* end_turns(Task& task) noexcept;
    [[nodiscard]] Task* finish(Lane& lane, Task& task) noexcept;
    void make_ready(Lane& lane, Task& task) noexcept;
    void start_engine(const EngineFactory& wanted);
    void start_some_engine() noexcept;
    void stop_engine();
    void replaces_engine(bool begins);

    /// Tasks that end on one lane before they are counted, at most: a shared counter is not for every task.
    static constexpr uint32_t kCountEvery = 256;
    void count(Lane& lane, SequenceState& sequence) noexcept {
        if (lane.finishing != &sequence || lane.finished.load(std::memory_order_relaxed) == kCountEvery) {
            flush(lane);
            lane.finishing = &sequence;
        }
        count_one(lane.finished);
    }
    void help_if_far_ahead(Lane& lane, SequenceState& sequence);
    void wait_until_done(SequenceState& sequence, InnerWait::Kind kind);
    void pause_until_done(SequenceState& sequence, const InnerWait& wait);
    void wake_waiters(const SequenceState* sequence) noexcept;
    /// Whoever waits for it looks. It may be gone.
    void may_be_done(const SequenceState* sequence) noexcept;
    [[nodiscard]] std::vector<std::shared_ptr<SequenceState>> sequences();
    [[nodiscard]] bool quiet();
    [[nodiscard]] bool all_done();
    void forget_failures() noexcept;
    void drop_kept();

    /// The engine is being switched: threads outside of tasks insert and wait later. A thread says that it
    /// uses the engine (Lane::in_engine) before it looks here, the switch looks at the lanes after it wrote
    /// this; between the two a light fence there and a heavy one here, so that one of them sees the other.
    /// release and acquire: whoever sees that it is over sees the new engine; a switch that sees that a
    /// thread is out of the engine, and what it did there.
    std::atomic<bool> switching_{false};
    std::mutex switch_mutex_;
    std::condition_variable switched_;

    /// For those below, and held while the engine hears of a service, which may call components back.
    std::recursive_mutex services_mutex_;
    bool is_replaced_ = false;       // the engine, right now
    bool services_arrived_ = false;  // meanwhile

    std::mutex sequences_mutex_;
    std::vector<std::weak_ptr<SequenceState>> sequences_;
    bool any_kept_ = false;  // of them, by themselves

    /// Tasks that wait for sequences, of this runtime or others. A task enters itself, then looks whether the
    /// sequence is done; who counts the last end looks here afterwards; all seq_cst.
    std::atomic<size_t> waiter_count_{0};
    std::mutex waiters_mutex_;
    std::array<SequenceWaiter*, 64> waiters_{};  // lists, by the sequence's address
};

}  // namespace heddle::detail
