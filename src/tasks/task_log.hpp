// What a runtime notes of its tasks in the process's WorkLog: TracedTask, from a task's begin to its end,
// with its pauses, and TracedWait, while a thread waits.
//
// On the stack of who runs the task or waits. Where nothing is traced there is no TracedTask, and a
// TracedWait does nothing.
#pragma once

#include <cstdint>

#include "trace/work_log.hpp"

namespace heddle {

/// `engine` and `name` live until the log is flushed.
class TracedTask {
  public:
    TracedTask(trace::WorkLog& log, const char* engine, const char* name) noexcept;
    ~TracedTask() { note(trace::SpanKind::kWork); }
    TracedTask(const TracedTask&) = delete;
    TracedTask& operator=(const TracedTask&) = delete;

    /// While it lives the task is paused; it may go on in another thread. Null: nothing is traced.
    class Pause {
      public:
        explicit Pause(TracedTask* task) noexcept : task_(task) {
            if (task_ != nullptr) task_->pause();
        }
        ~Pause() {
            if (task_ != nullptr) task_->begin();
        }
        Pause(const Pause&) = delete;
        Pause& operator=(const Pause&) = delete;

      private:
        TracedTask* task_;
    };
    [[nodiscard]] trace::WorkLog& log() const { return log_; }
    /// When its present piece began: another one after each pause.
    [[nodiscard]] int64_t began_ns() const { return began_ns_; }
    [[nodiscard]] const char* engine() const { return engine_; }

  private:
    [[gnu::noinline]] void begin() noexcept;
    void pause() noexcept;
    [[gnu::noinline]] void note(trace::SpanKind kind) noexcept;

    trace::WorkLog& log_;
    const char* engine_;
    const char* name_;
    int64_t number_ = 0;  // from its first pause on
    int64_t began_ns_ = 0;
    int cpu_ = -1;
};

/// A thread that waits, in a task or not, and does not leave its stack meanwhile. Null: nothing is traced.
class TracedWait {
  public:
    TracedWait(trace::WorkLog* log, const char* engine) noexcept;
    ~TracedWait();
    TracedWait(const TracedWait&) = delete;
    TracedWait& operator=(const TracedWait&) = delete;

  private:
    trace::WorkLog* log_;
    const char* engine_;
    int64_t began_ns_ = 0;
};

}  // namespace heddle
