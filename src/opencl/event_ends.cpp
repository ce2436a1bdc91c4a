#include "opencl/event_ends.hpp"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace heddle::opencl {
namespace {

using Act = std::function<void(cl_int)>;

struct Watch {
    OwnedEvent event;
    Act act;
};

/// Those whose end was not told yet, by numbers that callbacks have. Never destroyed: commands may end while
/// the process does.
struct Watches {
    std::mutex mutex;
    std::unordered_map<uintptr_t, Watch> all;
    uintptr_t last = 0;
};
Watches& watches() {
    static auto* const made = new Watches;
    return *made;
}

OwnedEvent kept_event(cl_event event) {
    return next().clRetainEvent(event) == CL_SUCCESS ? OwnedEvent(event) : OwnedEvent();
}

Watch take(uintptr_t number) {
    const std::lock_guard guard(watches().mutex);
    auto node = watches().all.extract(number);
    return node.empty() ? Watch{} : std::move(node.mapped());
}

/// Whoever comes first does.
void tell(uintptr_t number, cl_int status) {
    if (const Watch watch = take(number); watch.act != nullptr) watch.act(status);
}

}  // namespace

cl_int drivers_status(cl_event event) {
    cl_int status = CL_COMPLETE;
    next().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    return status;
}

bool when_over(cl_event event, Act act) {
    OwnedEvent kept = kept_event(event);
    if (kept.get() == nullptr) return false;
    uintptr_t number = 0;
    {
        const std::lock_guard guard(watches().mutex);
        number = ++watches().last;
        watches().all.emplace(number, Watch{std::move(kept), std::move(act)});
    }
    const cl_int code = next().clSetEventCallback(
        event, CL_COMPLETE,
        [](cl_event over, cl_int status, void* data) {
            // Of one that had failed before, PoCL tells that it is complete.
            tell(reinterpret_cast<uintptr_t>(data), std::min(status, drivers_status(over)));
        },
        reinterpret_cast<void*>(number));
    if (code != CL_SUCCESS) {
        (void)take(number);
        return false;
    }
    // It may have failed before anybody knew of the watch.
    if (const cl_int status = drivers_status(event); status < 0) tell(number, status);
    return true;
}

void look_for_failures() {
    std::vector<std::pair<uintptr_t, OwnedEvent>> events;
    {
        const std::lock_guard guard(watches().mutex);
        for (const auto& [number, watch] : watches().all)
            events.emplace_back(number, kept_event(watch.event.get()));
    }
    for (const auto& [number, event] : events)
        if (const cl_int status = drivers_status(event.get()); status < 0) tell(number, status);
}

}  // namespace heddle::opencl
