// NativeBehind: an engine that knows the order of tasks by a foreign runtime's graph, and has them run by the
// workers of the native engine, which stands behind it; for runtimes whose own workers cannot be had one by
// one, never sleep or cannot wait in a task.
//
// Who derives from it says of each task that has data when it could run, and is told of its end. All else
// (workers, pauses, priorities, the ledger) is native's. Tasks without data, and children of tasks, never
// come to the foreign graph.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "tasks/engine.hpp"

namespace heddle {

/// What a foreign graph has of its own of a task that could run, until that has ended.
struct InGraph {
    InGraph* next = nullptr;  ///< in the one list that it is in
};

class NativeBehind : public Engine, protected EngineHost {
  public:
    void ready(Lane& lane, Task& task) override { native_->ready(lane, task); }
    [[nodiscard]] bool own_graph() const override { return true; }
    void wait_until(Lane& lane, const std::function<bool()>& reached) override {
        native_->wait_until(lane, reached);
    }
    void notify() override { native_->notify(); }
    bool help(Lane& lane, uint64_t wanted) noexcept override { return native_->help(lane, wanted); }
    void services_arrived() override { native_->services_arrived(); }
    [[nodiscard]] bool goes_near() const override { return native_->goes_near(); }
    [[nodiscard]] std::string why_no_more_pause() const override { return native_->why_no_more_pause(); }
    void suspend(Announcement publish) override { native_->suspend(publish); }

  protected:
    explicit NativeBehind(const EngineOptions& options);
    /// Each destructor of what derives from it begins with that: until then workers may be on their way out
    /// of run().
    void stop_native();

    /// A task that was marked has ended, on this thread. As EngineHost::run(): with `continuation`, if any,
    /// returns one that can run now.
    virtual Task* ended(Lane& lane, InGraph& in_graph, Task* continuation) noexcept = 0;

    /// A task that could run. `in_graph` stays until ended().
    static void mark(Task& task, InGraph& in_graph) noexcept;
    /// Has it run, marked.
    void may_run(Lane& lane, Task& task, InGraph& in_graph) noexcept;

    // The host of the native engine: ours, but for the end of tasks.
    [[nodiscard]] Lane& lane() override { return host_.lane(); }
    Task* run(Lane*& lane, Task& task) noexcept override;
    Task* run_here(Lane& lane, Task& task) noexcept override;
    void flush(Lane& lane) noexcept override { host_.flush(lane); }
    [[nodiscard]] uint32_t in_line() const noexcept override { return host_.in_line(); }
    [[nodiscard]] uint32_t started_in_line() const noexcept override { return host_.started_in_line(); }
    [[nodiscard]] Task* next_in_line(Lane& lane, uint32_t most) noexcept override {
        return host_.next_in_line(lane, most);
    }
    [[nodiscard]] bool put_back(Lane& lane, Task& task) noexcept override {
        return host_.put_back(lane, task);
    }
    [[nodiscard]] LaneTable& all_lanes() noexcept override { return host_.all_lanes(); }
    [[nodiscard]] PollingServices& polling_services() noexcept override { return host_.polling_services(); }
    bool poll() noexcept override { return host_.poll(); }
    [[nodiscard]] int nearest(const CpuSet& taken, const CpuSet& free) const override {
        return host_.nearest(taken, free);
    }
    [[nodiscard]] TaskFrame* frame() noexcept override { return host_.frame(); }
    TaskFrame* swap_frame(TaskFrame* frame) noexcept override { return host_.swap_frame(frame); }
    bool stay_on(const CpuSet& cpus, const std::function<void()>& stay) override {
        return host_.stay_on(cpus, stay);
    }
    [[nodiscard]] std::unique_ptr<Engine> make_native(const EngineOptions& options) override {
        return host_.make_native(options);
    }

    EngineHost& host_;
    const EngineOptions options_;

  private:
    std::unique_ptr<Engine> native_;
};

}  // namespace heddle
