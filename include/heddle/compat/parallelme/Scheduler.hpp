// parallelme::Scheduler (seed 004 section 2.3): a constructor, push, pop, waitUntilIdle, a destructor, which
// threads of the runtime call at any time.
#pragma once

#include <memory>

#include "../../device.hpp"

namespace parallelme {

class Device;
class Task;

class Scheduler {
  public:
    Scheduler() = default;
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;
    virtual ~Scheduler() = default;

    virtual void push(std::unique_ptr<Task> task) = 0;
    /// For an idle device: a task whose program was built there (Program::hasDeviceID()); another one fails.
    /// Null where there is nothing for it.
    virtual std::unique_ptr<Task> pop(Device& device) = 0;
    /// Until all that was pushed was popped.
    virtual void waitUntilIdle() = 0;

    /// One of heddle's that does what this one would; null: this one does it itself.
    virtual std::shared_ptr<heddle::devices::Scheduler> heddle_scheduler() { return nullptr; }
};

}  // namespace parallelme
