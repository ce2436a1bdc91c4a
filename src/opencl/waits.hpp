// How a program waits for its commands. A task that does is paused, and its worker goes on with others, until
// the driver tells of the end in a thread of its own; any other thread waits in the driver. Any thread.
#pragma once

#include <span>

#include "opencl/next.hpp"

namespace heddle::opencl {

/// As clWaitForEvents: CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST where one has failed.
[[nodiscard]] cl_int wait_for(std::span<const cl_event> events);
/// As clFinish. A task does not wait for what others enqueue meanwhile.
[[nodiscard]] cl_int finish(cl_command_queue queue);

/// What a blocking command answers that has been enqueued in a task as one that does not block: the end of
/// its event is waited for, and `wanted`, unless null or it has failed, gets the event. `after` is its wait
/// list. CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST where one of those has failed, else its own status.
[[nodiscard]] cl_int end_of_blocking(cl_event event, std::span<const cl_event> after, cl_event* wanted);

}  // namespace heddle::opencl
