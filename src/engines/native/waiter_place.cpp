#include "engines/native/waiter_place.hpp"

#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

constexpr Nanoseconds kLookEvery = std::chrono::milliseconds(1);

}  // namespace

WaiterPlace::WaiterPlace(const CpuSet& cpus, bool bind) {
    if (!bind) return;
    before_ = affinity_if_known();
    allowed_ = before_.intersects(cpus) ? before_ & cpus : cpus;
    now_ = before_;
    if (!before_.empty()) move_to(allowed_);
}

WaiterPlace::~WaiterPlace() {
    if (!now_.empty()) move_to(before_);
}

void WaiterPlace::look(const WorkerPool& pool) {
    if (now_.empty()) return;
    const Time now = SteadyClock().now();
    if (now < next_look_) return;
    next_look_ = now + kLookEvery;
    const CpuSet free = allowed_ - pool.occupied();
    move_to(free.empty() ? allowed_ : free);
}

void WaiterPlace::move_to(const CpuSet& cpus) {
    if (cpus == now_) return;
    // What the system refuses it has taken from the process meanwhile: the thread stays where it may be.
    (void)set_thread_affinity(cpus);
    now_ = cpus;
}

}  // namespace heddle
