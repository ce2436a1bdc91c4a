// GraphEngine: tasks in the order that a foreign runtime's graph finds, run by the workers of the native
// engine; for runtimes whose own workers cannot be had one by one, never sleep or cannot wait in a task.
//
// One thread of the engine, the feeder, alone speaks with the foreign runtime, which stands behind
// ForeignGraph: it tells it of tasks in the order of insertion, learns which of them could run, and tells it
// of those that have ended. All else (workers, pauses, priorities, the ledger) is native's. Tasks without
// data, and children of tasks, never come to the foreign graph.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "tasks/engine.hpp"
#include "tasks/event_count.hpp"

namespace heddle {

class GraphEngine;

/// What a foreign graph has of its own of a task that could run, until that has ended.
struct InGraph {
    InGraph* next = nullptr;  ///< in the one list that it is in
};

/// The foreign runtime. Made, used and destroyed on the feeder's thread.
class ForeignGraph {
  public:
    virtual ~ForeignGraph() = default;
    /// The task follows all that were added before it and use its data. GraphEngine::may_run() is called
    /// when it could run, here or later.
    virtual void add(Task& task) = 0;
    /// A task that could run has ended.
    virtual void end(InGraph& task) = 0;
    /// Does something that is to be done. False: there was nothing.
    virtual bool step() = 0;
};

class GraphEngine final : public Engine, private EngineHost {
  public:
    using MakeGraph = std::unique_ptr<ForeignGraph> (*)(GraphEngine&);

    GraphEngine(const EngineOptions& options, MakeGraph make);
    ~GraphEngine() override;

    void ready(Lane& lane, Task& task) override { native_->ready(lane, task); }
    void insert(Lane& lane, Task& task) override;
    [[nodiscard]] bool own_graph() const override { return true; }
    void wait_until(Lane& lane, const std::function<bool()>& reached) override {
        native_->wait_until(lane, reached);
    }
    void notify() override { native_->notify(); }
    bool help(Lane& lane) override { return native_->help(lane); }
    void services_arrived() override { native_->services_arrived(); }
    [[nodiscard]] bool goes_near() const override { return native_->goes_near(); }
    [[nodiscard]] bool suspends() const override { return native_->suspends(); }
    [[nodiscard]] std::string why_no_more_pause() const override { return native_->why_no_more_pause(); }
    void suspend(Publish publish) override { native_->suspend(publish); }
    void sleep_in_task(const std::function<void()>& sleep) override { native_->sleep_in_task(sleep); }

    /// For the graph, on a feeder's thread. `in_graph` is its own until end().
    void may_run(Task& task, InGraph& in_graph) noexcept;

  private:
    // The host of the native engine: ours, but for the end of tasks.
    [[nodiscard]] Lane& lane() override { return host_.lane(); }
    Task* run(Lane*& lane, Task& task) noexcept override;
    Task* run_here(Lane& lane, Task& task) noexcept override;
    void flush(Lane& lane) noexcept override { host_.flush(lane); }
    [[nodiscard]] LaneTable& all_lanes() noexcept override { return host_.all_lanes(); }
    [[nodiscard]] PollingServices& polling_services() noexcept override { return host_.polling_services(); }
    bool poll() noexcept override { return host_.poll(); }
    [[nodiscard]] int nearest(const CpuSet& taken, const CpuSet& free) const override {
        return host_.nearest(taken, free);
    }
    [[nodiscard]] TaskFrame* frame() noexcept override { return host_.frame(); }
    TaskFrame* swap_frame(TaskFrame* frame) noexcept override { return host_.swap_frame(frame); }
    [[nodiscard]] std::unique_ptr<Engine> make_native(const EngineOptions& options) override {
        return host_.make_native(options);
    }

    /// Takes out of the task what the foreign graph has of it, if that knows it.
    [[nodiscard]] static InGraph* let_go(Task& task) noexcept;
    void ended(InGraph* in_graph) noexcept;
    void start();
    void feed(ForeignGraph& graph) noexcept;
    void bind_feeder() const;
    [[nodiscard]] Lane& lane_of_feeder() noexcept;

    EngineHost& host_;
    const EngineOptions options_;
    const MakeGraph make_;

    std::once_flag started_;
    std::thread feeder_;
    std::atomic<bool> stop_{false};
    /// Newest first, linked by Task::next and InGraph::next: pushed by anybody, taken whole by the feeder.
    alignas(64) std::atomic<Task*> inserted_{nullptr};
    alignas(64) std::atomic<InGraph*> ended_{nullptr};
    EventCount bell_;  // the feeder sleeps here
    /// Destroyed first, and the pointer holds until that is done: its workers may be on their way out of
    /// run().
    std::unique_ptr<Engine> native_;
};

}  // namespace heddle
