#include "opencl/barriers.hpp"

#include <mutex>
#include <unordered_map>

#include "opencl/event_ends.hpp"

namespace heddle::opencl {
namespace {

/// Never destroyed: commands may end while the process does.
struct Last {
    std::mutex mutex;
    std::unordered_map<cl_command_queue, cl_event> all;
};
Last& last() {
    static auto* const made = new Last;
    return *made;
}

}  // namespace

void Barriers::note(cl_command_queue queue, cl_event barrier) {
    {
        const std::lock_guard guard(last().mutex);
        last().all[queue] = barrier;
    }
    const auto forget = [queue, barrier](cl_int) {
        const std::lock_guard guard(last().mutex);
        const auto found = last().all.find(queue);
        if (found != last().all.end() && found->second == barrier) last().all.erase(found);
    };
    // The watch keeps the event as long as it is here.
    if (!when_over(barrier, forget)) forget(CL_COMPLETE);
}

OwnedEvent Barriers::last_of(cl_command_queue queue) {
    const std::lock_guard guard(last().mutex);
    const auto found = last().all.find(queue);
    if (found == last().all.end() || next().clRetainEvent(found->second) != CL_SUCCESS) return {};
    return OwnedEvent(found->second);
}

}  // namespace heddle::opencl
