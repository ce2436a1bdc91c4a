#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "base/signals_blocked.hpp"
#include "heddle/error.hpp"
#include "heddle/machine.hpp"
#include "offload/exit_gate.hpp"
#include "offload/kernel_places.hpp"
#include "tasks/outer_affinity.hpp"

namespace heddle {
namespace {

/// How long kernels follow each other on the same CPUs before others have a turn there.
constexpr auto kLongestTurn = std::chrono::milliseconds(10);

CrewOptions options_for(const EngineFactory& engine, CrewWatcher& watcher) {
    const Machine machine = Machine::detect();
    Exchange& exchange = Exchange::process();
    const CpuAllowance allowed = allowance(machine);
    exchange.lend_unowned(allowed.usable);
    know_outer_affinity();
    return {exchange, engine.name, !machine.synthetic(), allowed.affinity, *engine.kernels, watcher};
}

}  // namespace

CrewKernels::CrewKernels(const EngineFactory& engine, CpuSet cpus)
    : engine_(engine), options_(options_for(engine, *this)), cpus_(std::move(cpus)) {
    ExitGate::watch(&engine);
}

CrewKernels::~CrewKernels() {
    {
        const std::lock_guard guard(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    threads_.clear();
}

void CrewKernels::spawn(std::shared_ptr<detail::KernelState> kernel, const CpuSet& cpus) {
    const std::lock_guard guard(mutex_);
    queue_.push_back({std::move(kernel), cpus});
    try {
        start_if_needed();
    } catch (...) {
        if (!somebody_comes()) {
            queue_.pop_back();
            throw;
        }
    }
    changed_.notify_one();
}

/// Twice as many as CPUs: kernels on CPUs that are taken do not hold up all others.
void CrewKernels::start_if_needed() {
    if (static_cast<int>(queue_.size()) + (services_.empty() ? 0 : 1) <= idle_) return;
    if (static_cast<int>(threads_.size()) - blocked_ >= 2 * cpus_.count()) return;
    const SignalsBlocked blocked;
    threads_.emplace_back();
    try {
        threads_.back().start([this] { work(); }, engine_.kernels->keeps_threads);
    } catch (const std::system_error& error) {
        threads_.pop_back();
        throw Error(ErrorCode::kLimit, std::string("there can be no thread for a kernel: ") + error.what());
    } catch (...) {
        threads_.pop_back();
        throw;
    }
}

/// Those that run a kernel end it, or say that it blocks, and then this is asked again.
bool CrewKernels::somebody_comes() const {
    return static_cast<int>(threads_.size()) > blocked_;
}

void CrewKernels::kernel_blocks(bool blocks) {
    const std::lock_guard guard(mutex_);
    blocked_ += blocks ? 1 : -1;
    try {
        if (blocks) start_if_needed();
    } catch (...) {
        if (queue_.empty() || somebody_comes()) return;
        --blocked_;
        throw;
    }
}

void CrewKernels::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        ++idle_;
        while (!stop_ && queue_.empty()) {
            if (!polls_ && !services_.empty())
                poll(lock);
            else
                changed_.wait(lock);
        }
        --idle_;
        if (queue_.empty()) return;
        Job job = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        run(std::move(job));
        lock.lock();
    }
}

/// A kernel, and those behind it that want the same CPUs.
struct CrewKernels::Turn {
    CrewKernels& kernels;
    Crew& crew;
    Job job;
    bool holds_exit_up = false;
};

void CrewKernels::run(Job job) {
    std::unique_lock lock(mutex_);
    const auto shared = std::make_shared<Crew>(options_, part(job.wanted, cpus_));
    const auto place = running_.insert(running_.end(), {shared, job.wanted});
    lock.unlock();
    Crew& crew = *shared;
    Turn turn{*this, crew, std::move(job)};
    try {
        crew.join();  // so that it wakes up where its CPU is
        crew.gather();
        options_.runner.run(
            crew, crew.settle(),
            [](void* argument) {
                auto& it = *static_cast<Turn*>(argument);
                it.kernels.run_turn(it);
            },
            &turn);
    } catch (...) {
        // Before it ran, or after; a kernel's own exceptions do not come here.
        if (turn.job.kernel != nullptr) {
            turn.job.kernel->function = [error = std::current_exception()] { std::rethrow_exception(error); };
            turn.job.kernel->run();
        }
    }
    crew.leave();
    if (turn.holds_exit_up) ExitGate::let_go();
    lock.lock();
    running_.erase(place);
    lock.unlock();
    // Who changes its CPUs just now may have it a moment longer.
    crew.end();
}

void CrewKernels::run_turn(Turn& turn) noexcept {
    const auto until = std::chrono::steady_clock::now() + kLongestTurn;
    while (true) {
        turn.crew.begin(*turn.job.kernel, turn.job.kernel->knot);
        turn.job.kernel->compute();
        if (!std::exchange(turn.holds_exit_up, true)) ExitGate::hold_up();
        turn.job.kernel->tell();
        turn.job.kernel = nullptr;
        if (std::chrono::steady_clock::now() >= until) return;
        {
            const std::lock_guard guard(mutex_);
            if (queue_.empty() || queue_.front().wanted != turn.job.wanted) return;
            turn.job = std::move(queue_.front());
            queue_.pop_front();
        }
        ExitGate::let_go();
        turn.holds_exit_up = false;
        turn.crew.resize();
        (void)turn.crew.settle();
    }
}

/// Until there is something else to do.
void CrewKernels::poll(std::unique_lock<std::mutex>& lock) {
    polls_ = true;
    PollingPause pause;
    while (!stop_ && queue_.empty() && !services_.empty()) {
        lock.unlock();
        if (services_.poll()) pause.restart();
        lock.lock();
        if (!stop_ && queue_.empty()) (void)changed_.wait_for(lock, pause.take());
    }
    polls_ = false;
    // Another that has nothing to do goes on with it.
    changed_.notify_one();
}

void CrewKernels::add_service(const std::string& name, PollingService service, void* data) {
    services_.add(name, service, data);
    const std::lock_guard guard(mutex_);
    try {
        start_if_needed();
    } catch (...) {
        if (!somebody_comes()) {
            services_.remove(service, data);
            throw;
        }
    }
    changed_.notify_one();
}

void CrewKernels::remove_service(PollingService service, void* data) {
    services_.remove(service, data);
}

void CrewKernels::set_cpus(const CpuSet& cpus) {
    std::vector<std::pair<std::shared_ptr<Crew>, CpuSet>> confined;
    {
        const std::lock_guard guard(mutex_);
        cpus_ = cpus;
        for (const Running& running : running_)
            confined.emplace_back(running.crew, part(running.wanted, cpus_));
    }
    // Without the lock: callbacks of the program's components may run, and call here.
    for (const auto& [crew, part] : confined) crew->confine(part);
}

}  // namespace heddle
