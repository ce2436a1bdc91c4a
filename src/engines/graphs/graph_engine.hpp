// GraphEngine: a NativeBehind for foreign runtimes that want to be spoken with by one thread.
//
// One thread of the engine, the feeder, alone does: it tells the runtime, which stands behind ForeignGraph,
// of tasks in the order of insertion, learns which of them could run, and tells it of those that have ended.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "engines/graphs/native_behind.hpp"
#include "tasks/event_count.hpp"

namespace heddle {

class GraphEngine;

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

class GraphEngine final : public NativeBehind {
  public:
    using MakeGraph = std::unique_ptr<ForeignGraph> (*)(GraphEngine&);

    GraphEngine(const EngineOptions& options, MakeGraph make);
    ~GraphEngine() override;

    void insert(Lane& lane, Task& task) override;

    /// For the graph, on a feeder's thread. `in_graph` is its own until end().
    void may_run(Task& task, InGraph& in_graph) noexcept;

  private:
    Task* ended(Lane& lane, InGraph& in_graph, Task* continuation) noexcept override;
    void start();
    void feed(ForeignGraph& graph) noexcept;
    void hand_over() noexcept;
    void bind_feeder() const;

    const MakeGraph make_;

    std::once_flag started_;
    std::thread feeder_;
    std::atomic<bool> stop_{false};
    /// Newest first, linked by Task::next and InGraph::next: pushed by anybody, taken whole by the feeder.
    alignas(64) std::atomic<Task*> inserted_{nullptr};
    alignas(64) std::atomic<InGraph*> ended_{nullptr};
    EventCount bell_;  // the feeder sleeps here
    struct CouldRun {
        Task* task;
        InGraph* in_graph;
    };
    std::array<CouldRun, 32> could_run_{};  // the feeder's
    size_t could_run_count_ = 0;
};

}  // namespace heddle
