#include <algorithm>
#include <utility>

#include "base/thread_probe.hpp"
#include "offload/kernel_places.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle {
namespace {

/// Below what makes an inserter help.
constexpr int kInBatch = 1'000;
/// Runtimes without kernels that are kept.
constexpr size_t kKept = 8;

}  // namespace

TaskKernels::TaskKernels(const EngineFactory& engine, CpuSet cpus) : engine_(engine), cpus_(std::move(cpus)) {
    // What cannot be is found now and not by the first kernel.
    std::list<Place> none;
    (void)place_for({}, none);
}

TaskKernels::Place::Place(CpuSet set, std::unique_ptr<detail::RuntimeState> state)
    : wanted(std::move(set)), runtime(std::move(state)) {
    runtime.state().of_kernels = &runtime;
}

bool TaskKernels::Place::idle() const {
    return std::ranges::all_of(batches, [](const Batch& batch) { return batch.left.load() == 0; });
}

TaskKernels::Batch& TaskKernels::Place::batch() {
    for (Batch& batch : batches)
        if (batch.left.load() < kInBatch) return batch;
    return batches.emplace_back(runtime);
}

/// `old`: what is no longer needed, to be destroyed without the lock.
TaskKernels::Place& TaskKernels::place_for(const CpuSet& wanted, std::list<Place>& old) {
    const auto found = std::ranges::find(places_, wanted, &Place::wanted);
    if (found != places_.end()) {
        places_.splice(places_.begin(), places_, found);
        return places_.front();
    }
    for (auto place = places_.end(); places_.size() >= kKept && place != places_.begin();)
        if (!(--place)->wanted.empty() && place->idle())
            old.splice(old.begin(), places_, std::exchange(place, std::next(place)));
    RuntimeOptions options;
    options.engine = engine_.name;
    auto state = std::make_unique<detail::RuntimeState>(options, part(wanted, cpus_), false);
    return places_.emplace_front(wanted, std::move(state));
}

void TaskKernels::spawn(std::shared_ptr<detail::KernelState> kernel, const CpuSet& cpus) {
    std::list<Place> old;
    const std::lock_guard guard(mutex_);
    Place& place = place_for(cpus, old);
    // Who waits for a kernel does not run it.
    if (place.runtime.state().engine->sleeps()) expect_thread_for("a kernel");
    Batch& batch = place.batch();
    batch.left.fetch_add(1);
    try {
        // What kernels that have begun bring comes first: many at once share a cache, and none of them ends
        // soon.
        batch.sequence.insert(TaskOptions{.priority = kWhenNothingElseCan},
                              [kernel = std::move(kernel), &left = batch.left]() mutable {
                                  kernel->run();
                                  kernel = nullptr;
                                  left.fetch_sub(1);
                              });
    } catch (...) {
        batch.left.fetch_sub(1);
        throw;
    }
}

void TaskKernels::add_service(const std::string& name, PollingService service, void* data) {
    std::list<Place> none;
    std::unique_lock lock(mutex_);
    Runtime& runtime = place_for({}, none).runtime;
    lock.unlock();
    register_polling_service(runtime, name, service, data);
}

void TaskKernels::remove_service(PollingService service, void* data) {
    std::list<Place> none;
    std::unique_lock lock(mutex_);
    Runtime& runtime = place_for({}, none).runtime;
    lock.unlock();
    unregister_polling_service(runtime, service, data);
}

void TaskKernels::set_cpus(const CpuSet& cpus) {
    const std::lock_guard guard(mutex_);
    cpus_ = cpus;
    for (Place& place : places_) place.runtime.state().confine(part(place.wanted, cpus_));
}

}  // namespace heddle
