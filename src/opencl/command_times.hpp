// When a held command was queued, handed on, begun and ended, on the clock of its device's driver, so that a
// program can set it beside the driver's own commands. Each time is noted once, before the command has ended;
// asked for by any thread, after that.
#pragma once

#include <array>
#include <functional>

#include "opencl/driver_clock.hpp"
#include "opencl/next.hpp"

namespace heddle::opencl {

class CommandTimes {
  public:
    explicit CommandTimes(cl_command_queue queue) : queue_(queue) {}

    /// Finds out which clock the device's driver reads, once for all of its commands, by a marker in a queue
    /// of its own; then calls `then`, here or in the driver's thread.
    void find_clock(std::function<void()> then) const;
    /// Now, for CL_PROFILING_COMMAND_QUEUED to _COMPLETE.
    void note(cl_profiling_info what);
    /// It is run as this command of the driver's, in a queue with profiling.
    void run_as(cl_event event);
    /// As clGetEventProfilingInfo of a command that has ended well, for what note() takes.
    [[nodiscard]] cl_int ask(cl_profiling_info what, cl_ulong& ns) const;

  private:
    cl_command_queue const queue_;  // the command's, which keeps it
    std::array<Instant, CL_PROFILING_COMMAND_COMPLETE - CL_PROFILING_COMMAND_QUEUED + 1> noted_{};
    OwnedEvent drivers_;
};

}  // namespace heddle::opencl
