#include "tasks/waiter_place.hpp"

#include <new>

#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

constexpr Nanoseconds kLookAgain = std::chrono::milliseconds(1);

}  // namespace

WaiterPlace::WaiterPlace(const CpuSet& cpus, bool bind) : before_fence_(affinity_before_fence()) {
    if (!bind) return;
    try {
        before_ = affinity_if_known();
        allowed_ = before_.intersects(cpus) ? before_ & cpus : cpus;
        now_ = before_;
        if (!before_.empty()) move_to(allowed_);
    } catch (const std::bad_alloc&) {
        // It stays where it is.
    }
}

WaiterPlace::~WaiterPlace() {
    const bool fence_ended = before_fence_ != nullptr && affinity_before_fence() == nullptr;
    const CpuSet& after = fence_ended ? *before_fence_ : before_;
    if (!now_.empty() && !(now_ == after)) (void)set_thread_affinity(after);
}

void WaiterPlace::look(const WorkerPool& pool) {
    if (now_.empty()) return;
    const Time now = SteadyClock().now();
    if (now < next_look_) return;
    next_look_ = now + kLookAgain;
    try {
        const CpuSet free = allowed_ - pool.occupied();
        move_to(free.empty() ? allowed_ : free);
    } catch (const std::bad_alloc&) {
        // It stays where it is.
    }
}

void WaiterPlace::move_to(const CpuSet& cpus) {
    if (cpus == now_) return;
    now_ = cpus;
    // What the system refuses it has taken from the process meanwhile: the thread stays where it may be.
    (void)set_thread_affinity(cpus);
}

}  // namespace heddle
