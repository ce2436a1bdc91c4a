// The engine of a RuntimeState: how it starts, stops, and is switched while other threads want to use it, and
// hears of polling services.
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/asymmetric_fence.hpp"
#include "heddle/error.hpp"
#include "tasks/device_choice.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle::detail {

/// A switch of engines: as long as it lives, threads outside of tasks wait.
class RuntimeState::OneSwitch {
  public:
    explicit OneSwitch(RuntimeState& runtime) : runtime_(runtime) {
        {
            std::unique_lock lock(runtime_.switch_mutex_);
            runtime_.switched_.wait(lock, [&] { return !runtime_.switching_.load(); });
            runtime_.switching_.store(true, std::memory_order_relaxed);
        }
        heavy_fence();
    }
    ~OneSwitch() {
        const std::lock_guard lock(runtime_.switch_mutex_);
        runtime_.switching_.store(false, std::memory_order_release);
        runtime_.switched_.notify_all();
    }
    OneSwitch(const OneSwitch&) = delete;
    OneSwitch& operator=(const OneSwitch&) = delete;

  private:
    RuntimeState& runtime_;
};

void RuntimeState::start_engine(const EngineFactory& wanted) {
    Exchange& exchange = Exchange::process();
    exchange.lend_unowned(allowance(machine).usable);
    // An owner of nothing: it runs on what lies idle in this process, and leaves it when it has no work.
    provider = std::make_unique<ComponentCpus>(
        exchange, wanted.name, CpuSet(), wanted_cpus, [this, before = work()] {
            const WorkCounts now = work();
            return WorkCounts{now.inserted - before.inserted, now.ended - before.ended};
        });
    cpus_of_engine = std::make_unique<OutsideCpus>(*provider, makers_affinity);
    engine = wanted.make({*this, machine, *cpus_of_engine, cpus, workers, !machine.synthetic(), callers_work,
                          DeviceChoice::wants_devices(), stack_bytes});
    own_graph_ = engine->own_graph();
    looks_at_line_ = engine->looks_at_line();
    try {
        if (!polling.empty()) engine->services_arrived();
    } catch (...) {
        stop_engine();
        throw;
    }
    factory = &wanted;
}

void RuntimeState::stop_engine() {
    reactor.stop();  // it may still be about to wake the last task
    // A thread of the engine that has counted the last end may still be about to notify it: the pointer holds
    // until all of them have gone.
    delete engine.get();
    (void)engine.release();
    cpus_of_engine.reset();
    provider.reset();
}

bool RuntimeState::quiet() {
    for (uint32_t i = 0; i < lanes->size(); ++i)
        if ((*lanes)[i].in_engine.load(std::memory_order_acquire)) return false;
    return all_done();
}

void RuntimeState::add_service(const std::string& name, PollingService service, void* data) {
    polling.add(name, service, data);
    try {
        // Not as who inserts: while a switch waits for tasks, they may wait for what the service is to tell.
        const std::lock_guard lock(services_mutex_);
        if (is_replaced_)
            services_arrived_ = true;
        else
            engine->services_arrived();
    } catch (...) {
        polling.remove(service, data);
        throw;
    }
}

/// Services that come meanwhile are told of to the engine that is there then.
void RuntimeState::replaces_engine(bool begins) {
    const std::lock_guard lock(services_mutex_);
    is_replaced_ = begins;
    if (!begins && std::exchange(services_arrived_, false)) engine->services_arrived();
}

void RuntimeState::switch_engine(std::string_view name) {
    const EngineFactory& wanted = find_engine(name);
    Lane& own = lane();
    if (current_frame() != nullptr || PollingServices::in_service())
        throw Error(
            ErrorCode::kInvalidArgument,
            "a task or a polling service cannot switch the engine that runs it: let another thread do "
            "it");
    const OneSwitch one(*this);
    while (!quiet()) {
        for (const auto& sequence : sequences()) engine->wait_until(own, [&] { return sequence->done(); });
        std::unique_lock lock(switch_mutex_);
        switched_.wait_for(lock, std::chrono::milliseconds(1));
    }
    std::exception_ptr problem;
    replaces_engine(true);
    stop_engine();
    try {
        start_engine(wanted);
    } catch (...) {
        problem = std::current_exception();
        start_some_engine();
    }
    replaces_engine(false);
    if (problem) std::rethrow_exception(problem);
}

/// The one before, or where that cannot be had any more the native one; there is one at last.
void RuntimeState::start_some_engine() noexcept {
    const EngineFactory* const before = factory;
    for (bool native = false;; native = !native) {
        try {
            return start_engine(native ? find_engine("native") : *before);
        } catch (...) {
            if (native) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
}

}  // namespace heddle::detail
