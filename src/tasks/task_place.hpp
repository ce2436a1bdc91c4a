// Placement, TaskPlace: the CPUs that a task shall run on, and a thread that was moved there for it.
//
// Engines choose threads, not CPUs. So a thread that is about to run a task with CPUs of its own, and is not
// on them, is bound to these for as long as the task runs, and then as before; where the task is paused its
// thread is given back what it had, and the one that it goes on in is moved.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "heddle/machine.hpp"
#include "heddle/task.hpp"

namespace heddle {

struct Placement {
    CpuSet cpus;  ///< of the runtime's, never empty
    bool must;    ///< false: shall, where that costs nothing but the way
    friend bool operator==(const Placement&, const Placement&) = default;
};

/// All that were ever named in a runtime. Any thread.
class Placements {
  public:
    /// What TaskOptions::cpus and near say, or null where that is nothing. Throws kInvalidArgument where a
    /// set is empty or has CPUs that are not in `all`, where the machine has no such CPU or node;
    /// std::bad_alloc. It lives as long as this.
    [[nodiscard]] const Placement* find(const TaskOptions& options, const Machine& machine,
                                        const CpuSet& all);

  private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<const Placement>> known_;
};

/// On the stack of a task that runs. Only the thread that runs it uses it.
class TaskPlace {
  public:
    /// Throws kSystem where the task must be there and the system refuses it.
    explicit TaskPlace(const Placement& placement) : placement_(placement) { enter(true); }
    ~TaskPlace() { leave(); }
    TaskPlace(const TaskPlace&) = delete;
    TaskPlace& operator=(const TaskPlace&) = delete;

    /// While the task waits, and its thread does other things; it may go on in another one. What the system
    /// refuses then is let be.
    class Away {
      public:
        /// Null: of a task that may be anywhere.
        explicit Away(TaskPlace* place) noexcept : place_(place) {
            if (place_ != nullptr) place_->leave();
        }
        ~Away() {
            if (place_ != nullptr) place_->enter_again();
        }
        Away(const Away&) = delete;
        Away& operator=(const Away&) = delete;

      private:
        TaskPlace* const place_;
    };

  private:
    void leave() noexcept;
    void enter_again() noexcept;
    void enter(bool first);

    const Placement& placement_;
    CpuSet before_;  // of the thread; empty: it was not moved
};

}  // namespace heddle
