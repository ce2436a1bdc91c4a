// TaskFrame: a task that runs, on the stack of who runs it; and the innermost one of the calling flow of
// control.
//
// Only the flow itself uses its frames. They go with a fiber that is paused: whoever switches fibers keeps
// the one and sets the other.
#pragma once

#include <memory>

#include "tasks/task.hpp"

namespace heddle {

class Domain;
class TaskPlace;
class TracedTask;
struct WaitedFor;

/// Something that a task has for itself while it runs, and that others may need while it waits.
class HeldByTask {
  public:
    /// Before each wait of the task, in it.
    virtual void let_go() noexcept = 0;

  protected:
    ~HeldByTask() = default;
};

struct TaskFrame {
    Task* task;
    detail::RuntimeState* runtime;
    bool stays;  ///< must not be paused: what is under it on its stack has tasks in hand that could run
    bool over = false;  ///< its function has ended, and its future is settled: its closure is destroyed
    TaskFrame* below = nullptr;          ///< runs on the same stack, and goes on after this one
    std::shared_ptr<Domain> children{};  ///< made with the first sequence in it
    TaskPlace* place = nullptr;          ///< where the thread was moved for it
    TracedTask* traced = nullptr;        ///< where tasks are traced
    HeldByTask* held = nullptr;          ///< of whom has something to let go
    WaitedFor* kernel = nullptr;         ///< that it runs: those who wait for that wait for the task
};

/// Null outside of tasks. Never inlined: what is thread-local must be looked up anew after a pause.
[[nodiscard, gnu::noinline]] TaskFrame* current_frame() noexcept;
/// Sets it, and returns what it was.
[[gnu::noinline]] TaskFrame* exchange_frame(TaskFrame* frame) noexcept;

/// Its task is going to wait. Throws kLimit with TaskFrame::stays.
void begin_wait(const TaskFrame& frame);

}  // namespace heddle
