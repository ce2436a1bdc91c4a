#include "opencl/waits.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "heddle/error.hpp"
#include "heddle/in_task.hpp"
#include "heddle/pause.hpp"
#include "opencl/held_command.hpp"

namespace heddle::opencl {
namespace {

cl_int drivers_status(cl_event event) {
    cl_int status = CL_COMPLETE;
    next().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    return status;
}

cl_int status_of(cl_event event) {
    const std::shared_ptr<HeldCommand> held = HeldCommand::of(event);
    return held != nullptr ? held->status() : drivers_status(event);
}

/// Again where there was no memory to pause the task.
void block(BlockCondition& over) {
    while (true) {
        try {
            over.block();
            return;
        } catch (const Error&) {
            std::this_thread::yield();
        }
    }
}

/// A task's. Who ends it first wakes the task.
struct Pause {
    void end() {
        if (!ended.exchange(true)) over.signal();
    }
    BlockCondition over;
    std::atomic<bool> ended{false};
};

/// Those that go on. Never destroyed: tasks may wait while the process ends.
struct Pauses {
    using ByEvent = std::unordered_multimap<cl_event, std::shared_ptr<Pause>>;
    std::mutex mutex;
    ByEvent all;
};
Pauses& pauses() {
    static auto* const made = new Pauses;
    return *made;
}

/// One of those, as long as it lives.
class PauseFor {
  public:
    explicit PauseFor(cl_event event) {
        const std::lock_guard guard(pauses().mutex);
        place_ = pauses().all.emplace(event, pause);
    }
    ~PauseFor() {
        const std::lock_guard guard(pauses().mutex);
        pauses().all.erase(place_);
    }
    PauseFor(const PauseFor&) = delete;
    PauseFor& operator=(const PauseFor&) = delete;

    const std::shared_ptr<Pause> pause = std::make_shared<Pause>();

  private:
    Pauses::ByEvent::iterator place_;
};

/// The task is paused until the driver tells of the end, or user_event_failed() does.
void pause_until_over(cl_event event) {
    if (drivers_status(event) <= CL_COMPLETE) return;
    cl_command_queue queue = nullptr;
    next().clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, static_cast<void*>(&queue), nullptr);
    if (queue != nullptr) next().clFlush(queue);
    const PauseFor here(event);
    // It may have failed before anybody knew of the pause.
    if (drivers_status(event) <= CL_COMPLETE) return;
    if (when_over(event, [pause = here.pause](cl_int) { pause->end(); })) block(here.pause->over);
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

void user_event_failed(cl_event event) {
    const std::lock_guard guard(pauses().mutex);
    const auto [first, last] = pauses().all.equal_range(event);
    std::for_each(first, last, [](const auto& one) { one.second->end(); });
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
