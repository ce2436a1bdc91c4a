#include "cores/fixed_cpus.hpp"

#include <utility>

namespace heddle {

FixedCpus::FixedCpus(CpuSet cpus) : cpus_(std::move(cpus)) {}

void FixedCpus::set(const CpuSet& cpus) {
    std::function<void()> changed;
    {
        const std::lock_guard guard(mutex_);
        cpus_ = cpus;
        returned_ -= cpus;
        changed = changed_;
    }
    if (changed) changed();
}

CpuSet FixedCpus::returned_cpus() const {
    const std::lock_guard guard(mutex_);
    return returned_;
}

int FixedCpus::demand() const {
    const std::lock_guard guard(mutex_);
    return demand_;
}

void FixedCpus::start(std::function<void()> changed) {
    const std::lock_guard guard(mutex_);
    changed_ = std::move(changed);
}

void FixedCpus::stop() {
    const std::lock_guard guard(mutex_);
    changed_ = nullptr;
}

CpuSet FixedCpus::usable() const {
    const std::lock_guard guard(mutex_);
    return cpus_;
}

void FixedCpus::set_demand(int cpus) {
    const std::lock_guard guard(mutex_);
    demand_ = cpus;
}

void FixedCpus::returned(const CpuSet& cpus) {
    const std::lock_guard guard(mutex_);
    returned_ |= cpus - cpus_;
}

void FixedCpus::give_back(const CpuSet&) {}

}  // namespace heddle
