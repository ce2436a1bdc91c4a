#include "opencl/command_times.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "opencl/event_ends.hpp"

namespace heddle::opencl {
namespace {

/// Never destroyed: commands may end while the process does.
struct Clocks {
    std::mutex mutex;
    std::unordered_map<cl_device_id, DriverClock> known;

    std::optional<DriverClock> of(cl_device_id device) {
        const std::lock_guard guard(mutex);
        const auto found = known.find(device);
        return found == known.end() ? std::nullopt : std::optional(found->second);
    }
    void add(cl_device_id device, const DriverClock& clock) {
        const std::lock_guard guard(mutex);
        known.emplace(device, clock);
    }
};
Clocks& clocks() {
    static auto* const all = new Clocks;
    return *all;
}

size_t index_of(cl_profiling_info what) {
    return what - CL_PROFILING_COMMAND_QUEUED;
}

cl_int time_of(cl_event event, cl_profiling_info what, cl_ulong& ns) {
    return next().clGetEventProfilingInfo(event, what, sizeof ns, &ns, nullptr);
}

}  // namespace

void CommandTimes::find_clock(std::function<void()> then) const {
    const auto device = queue_value<cl_device_id>(queue_, CL_QUEUE_DEVICE);
    cl_int code = CL_SUCCESS;
    cl_command_queue queue = nullptr;
    if (!clocks().of(device).has_value())
        queue = next().clCreateCommandQueue(queue_value<cl_context>(queue_, CL_QUEUE_CONTEXT), device,
                                            CL_QUEUE_PROFILING_ENABLE, &code);
    if (queue == nullptr) {
        then();
        return;
    }
    OwnedEvent marker;
    const Instant before = Instant::now();
    code = next().clEnqueueMarkerWithWaitList(queue, 0, nullptr, marker.place());
    const Instant after = Instant::now();
    const auto told = [=, event = marker.get()](cl_int) {
        cl_ulong ns = 0;
        const auto resolution_ns = device_value<size_t>(device, CL_DEVICE_PROFILING_TIMER_RESOLUTION);
        if (time_of(event, CL_PROFILING_COMMAND_QUEUED, ns) == CL_SUCCESS)
            clocks().add(device, DriverClock::found(ns, before, after, resolution_ns));
        then();
    };
    if (code != CL_SUCCESS || !when_over(marker.get(), told)) then();
    next().clFlush(queue);
    next().clReleaseCommandQueue(queue);
}

void CommandTimes::note(cl_profiling_info what) {
    noted_[index_of(what)] = Instant::now();
}

void CommandTimes::run_as(cl_event event) {
    if (next().clRetainEvent(event) == CL_SUCCESS) drivers_ = OwnedEvent(event);
}

cl_int CommandTimes::ask(cl_profiling_info what, cl_ulong& ns) const {
    const bool by_driver = drivers_.get() != nullptr;
    if (by_driver && what >= CL_PROFILING_COMMAND_START) return time_of(drivers_.get(), what, ns);
    const auto clock = clocks().of(queue_value<cl_device_id>(queue_, CL_QUEUE_DEVICE));
    if (!clock.has_value()) return CL_PROFILING_INFO_NOT_AVAILABLE;
    ns = clock->at(noted_[index_of(what)]);
    // Where the distance of a clock was measured it is a little off.
    cl_ulong start = 0;
    if (by_driver && time_of(drivers_.get(), CL_PROFILING_COMMAND_START, start) == CL_SUCCESS)
        ns = std::min(ns, start);
    return CL_SUCCESS;
}

}  // namespace heddle::opencl
