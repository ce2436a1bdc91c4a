#include "tasks/outer_affinity.hpp"

#include <utility>

#include "tasks/crew.hpp"
#include "tasks/frame.hpp"
#include "tasks/runtime_state.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

thread_local const CpuSet* callers_own [[gnu::tls_model("initial-exec")]] = nullptr;

}  // namespace

CalledOutside::CalledOutside(const CpuSet& outer) noexcept : sets_(current_frame() == nullptr) {
    if (sets_) before_ = std::exchange(callers_own, &outer);
}

CalledOutside::~CalledOutside() {
    if (sets_) callers_own = before_;
}

void know_outer_affinity() noexcept {
    tell_outer_affinity([]() noexcept -> const CpuSet* {
        if (const TaskFrame* const frame = current_frame(); frame != nullptr)
            return &frame->runtime->makers_affinity;
        if (const Crew* const crew = Crew::here(); crew != nullptr) return &crew->makers_affinity();
        return callers_own;
    });
}

void OutsideCpus::start(std::function<void()> changed) {
    const CalledOutside called(outer_);
    cpus_.start(std::move(changed));
}

void OutsideCpus::stop() {
    const CalledOutside called(outer_);
    cpus_.stop();
}

void OutsideCpus::set_demand(int cpus) {
    const CalledOutside called(outer_);
    cpus_.set_demand(cpus);
}

void OutsideCpus::returned(const CpuSet& cpus) {
    const CalledOutside called(outer_);
    cpus_.returned(cpus);
}

void OutsideCpus::give_back(const CpuSet& cpus) {
    const CalledOutside called(outer_);
    cpus_.give_back(cpus);
}

}  // namespace heddle
