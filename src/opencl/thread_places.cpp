#include "opencl/thread_places.hpp"

#include <algorithm>

namespace heddle::opencl {

ThreadPlaces::ThreadPlaces(int threads, CpuSet cpus) : threads_(threads), cpus_(std::move(cpus)) {}

bool ThreadPlaces::agrees(const ThreadRange& range, const CpuSet& cpus, bool may_share) const {
    if (range.first < 0 || range.first + range.count > threads_) return false;
    return std::none_of(claims_.begin(), claims_.end(), [&](const Claim& claim) {
        const bool apart = claim.range.first + claim.range.count <= range.first ||
                           range.first + range.count <= claim.range.first;
        const bool nested = claim.cpus.contains(cpus) || cpus.contains(claim.cpus);
        return !apart && !(may_share && nested);
    });
}

std::optional<ThreadRange> ThreadPlaces::claim(const CpuSet& cpus) {
    if (cpus.empty()) return std::nullopt;
    ThreadRange natural{0, cpus.count()};
    for (int cpu = cpus_.first(); cpu != cpus.first() && cpu >= 0; cpu = cpus_.next(cpu)) ++natural.first;
    // Its CPUs follow each other among those of the device.
    int in_a_row = 0;
    for (int cpu = cpus.first(); cpu >= 0 && cpus.contains(cpu); cpu = cpus_.next(cpu)) ++in_a_row;
    std::optional<ThreadRange> found;
    if (in_a_row == cpus.count() && agrees(natural, cpus, true)) found = natural;
    for (int first = 0; !found && first + cpus.count() <= threads_; ++first)
        if (agrees({first, cpus.count()}, cpus, false)) found = ThreadRange{first, cpus.count()};
    if (found) claims_.push_back({*found, cpus});
    return found;
}

void ThreadPlaces::release(const ThreadRange& range, const CpuSet& cpus) {
    const auto found = std::find(claims_.begin(), claims_.end(), Claim{range, cpus});
    if (found != claims_.end()) claims_.erase(found);
}

CpuSet ThreadPlaces::cpus_of(int thread) const {
    CpuSet all = cpus_;
    for (const Claim& claim : claims_)
        if (claim.range.first <= thread && thread < claim.range.first + claim.range.count) all &= claim.cpus;
    return all;
}

}  // namespace heddle::opencl
