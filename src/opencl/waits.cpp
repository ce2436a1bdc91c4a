#include "opencl/waits.hpp"

#include <algorithm>
#include <memory>

#include "heddle/in_task.hpp"
#include "heddle/pause.hpp"
#include "opencl/event_ends.hpp"
#include "opencl/held_command.hpp"

namespace heddle::opencl {
namespace {

cl_int status_of(cl_event event) {
    const std::shared_ptr<HeldCommand> held = HeldCommand::of(event);
    return held != nullptr ? held->status() : drivers_status(event);
}

/// The task is paused.
void pause_until_over(cl_event event) {
    if (drivers_status(event) <= CL_COMPLETE) return;
    cl_command_queue queue = nullptr;
    next().clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, static_cast<void*>(&queue), nullptr);
    if (queue != nullptr) next().clFlush(queue);
    const auto over = std::make_shared<BlockCondition>();
    if (when_over(event, [over](cl_int) { over->signal(); })) over->block_until_signalled();
}

}  // namespace

cl_int wait_for(std::span<const cl_event> events) {
    if (in_task())
        for (cl_event event : events) pause_until_over(event);
    const cl_int code = next().clWaitForEvents(static_cast<cl_uint>(events.size()), events.data());
    if (code != CL_SUCCESS) return code;
    const bool failed = std::any_of(events.begin(), events.end(), [](cl_event event) {
        const std::shared_ptr<HeldCommand> held = HeldCommand::of(event);
        return held != nullptr && held->status() < 0;
    });
    return failed ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}

cl_int finish(cl_command_queue queue) {
    if (!in_task()) return next().clFinish(queue);
    OwnedEvent marker;
    const cl_int code = next().clEnqueueMarkerWithWaitList(queue, 0, nullptr, marker.place());
    if (code == CL_SUCCESS) pause_until_over(marker.get());
    return code;
}

cl_int end_of_blocking(cl_event event, std::span<const cl_event> after, cl_event* wanted) {
    cl_int code = wait_for({&event, 1});
    if (code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST &&
        std::none_of(after.begin(), after.end(), [](cl_event one) { return status_of(one) < 0; }))
        code = status_of(event);
    if (code == CL_SUCCESS && wanted != nullptr)
        *wanted = event;
    else
        HeldCommand::release(event);
    return code;
}

}  // namespace heddle::opencl
