#include "engines/native/waiter_place.hpp"

#include <sched.h>

#include <vector>

namespace heddle {
namespace {

constexpr Nanoseconds kLookEvery = std::chrono::milliseconds(1);

CpuSet own_affinity(int cpus) {
    std::vector<unsigned long> mask = CpuSet().to_native(cpus);
    if (::sched_getaffinity(0, mask.size() * sizeof(unsigned long),
                            reinterpret_cast<cpu_set_t*>(mask.data())) != 0)
        return {};
    return CpuSet::from_native(reinterpret_cast<cpu_set_t*>(mask.data()),
                               mask.size() * sizeof(unsigned long));
}

}  // namespace

WaiterPlace::WaiterPlace(const CpuSet& cpus, bool bind) {
    if (!bind) return;
    before_ = own_affinity(CPU_SETSIZE);
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
    const auto mask = cpus.to_native();
    // What the system refuses it has taken from the process meanwhile: the thread stays where it may be.
    (void)::sched_setaffinity(0, mask.size() * sizeof(unsigned long),
                              reinterpret_cast<const cpu_set_t*>(mask.data()));
    now_ = cpus;
}

}  // namespace heddle
