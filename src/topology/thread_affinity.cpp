#include "topology/thread_affinity.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "heddle/error.hpp"

namespace heddle {
namespace {

std::atomic<OuterAffinity> who_binds{nullptr}, who_fences{nullptr};

const CpuSet* told_by(const std::atomic<OuterAffinity>& known) noexcept {
    const OuterAffinity told = known.load();
    return told == nullptr ? nullptr : told();
}

}  // namespace

CpuSet affinity_if_known() {
    // The kernel refuses a mask shorter than its own, which on few machines is longer than the usual one.
    for (int cpus = CPU_SETSIZE; cpus <= CpuSet::kMaxCpus; cpus *= 2) {
        std::vector<unsigned long> mask = CpuSet().to_native(cpus);
        const size_t bytes = mask.size() * sizeof(unsigned long);
        auto* const native = reinterpret_cast<cpu_set_t*>(mask.data());
        if (::sched_getaffinity(0, bytes, native) == 0) return CpuSet::from_native(native, bytes);
        if (errno != EINVAL) break;
    }
    return {};
}

CpuSet thread_affinity() {
    CpuSet known = affinity_if_known();
    if (known.empty())
        throw Error(ErrorCode::kSystem,
                    fmt::format("cannot read this thread's affinity: {}", std::strerror(errno)));
    return known;
}

void tell_outer_affinity(OuterAffinity known) noexcept {
    who_binds.store(known);
}

void tell_affinity_before_fence(OuterAffinity known) noexcept {
    who_fences.store(known);
}

const CpuSet* affinity_before_fence() noexcept {
    return told_by(who_fences);
}

CpuSet outer_affinity() {
    if (const CpuSet* const unbound = told_by(who_binds)) return *unbound;
    // A fence may come or go while the affinity is read.
    const CpuSet* before = affinity_before_fence();
    CpuSet now = thread_affinity();
    if (before == nullptr) before = affinity_before_fence();
    return before == nullptr ? now : *before;
}

bool set_thread_affinity(const CpuSet& cpus, pid_t thread) noexcept {
    try {
        const std::vector<unsigned long> mask = cpus.to_native();
        return ::sched_setaffinity(thread, mask.size() * sizeof(unsigned long),
                                   reinterpret_cast<const cpu_set_t*>(mask.data())) == 0;
    } catch (const std::bad_alloc&) {
        errno = ENOMEM;
        return false;
    }
}

}  // namespace heddle
