// RuntimeState::InEngine: threads that use the engine, and the switch to another one, keep out of each
// other's way.
#pragma once

#include <mutex>

#include "base/asymmetric_fence.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle::detail {

/// The calling thread uses the engine; a switch waits for it, or it for a switch that has begun. Not for
/// threads inside a task: what they are in has to end before the engine goes.
class RuntimeState::InEngine {
  public:
    InEngine(RuntimeState& runtime, Lane& lane) {
        if (lane.in_engine.load(std::memory_order_relaxed) || runtime.is_in_task()) return;
        while (!enters(runtime, lane)) wait_for_switch(runtime, lane);
        lane_ = &lane;
    }
    ~InEngine() {
        if (lane_ != nullptr) lane_->in_engine.store(false, std::memory_order_release);
    }
    InEngine(const InEngine&) = delete;
    InEngine& operator=(const InEngine&) = delete;

  private:
    static bool enters(RuntimeState& runtime, Lane& lane) {
        lane.in_engine.store(true, std::memory_order_relaxed);
        light_fence();
        return !runtime.switching_.load(std::memory_order_acquire);
    }
    [[gnu::noinline]] static void wait_for_switch(RuntimeState& runtime, Lane& lane) {
        lane.in_engine.store(false, std::memory_order_release);
        std::unique_lock lock(runtime.switch_mutex_);
        runtime.switched_.notify_all();
        runtime.switched_.wait(lock, [&] { return !runtime.switching_.load(); });
    }

    Lane* lane_ = nullptr;
};

}  // namespace heddle::detail
