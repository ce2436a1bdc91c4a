#include "engines/openmp/openmp_engine.hpp"

#include <pthread.h>

#include <algorithm>
#include <climits>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "base/full_fence.hpp"
#include "base/signals_blocked.hpp"
#include "cores/futex.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

/// Beyond 64 tasks for each thread of the region libgomp has their maker run them, beyond 256 libomp.
constexpr int kMostSpawned = 64;
/// How long a thread without a task keeps its CPU, once or twice.
constexpr Nanoseconds kIdleDelay = std::chrono::milliseconds(5);
/// Of threads that only lie there, at most.
constexpr int kMostParked = 16;

/// libgomp's threads without a task spin for milliseconds, on CPUs that may be others' by then, unless there
/// are more of them than CPUs.
int threads_to_park(int workers) {
    return openmp::keeps_threads() ? 0 : std::clamp(openmp::cpus() - workers, 0, kMostParked);
}

}  // namespace

OpenMpEngine::OpenMpEngine(const EngineOptions& options) : GuestEngine(options) {
    const SignalsBlocked blocked;
    const int threads = options.workers + 1 + threads_to_park(options.workers);
    try {
        leader_.start([this, threads] { openmp::region(*this, threads); }, openmp::keeps_threads());
    } catch (const std::system_error& error) {
        throw Error(ErrorCode::kLimit,
                    std::string("the engine " HEDDLE_ENGINE " cannot create its thread: ") + error.what());
    }
}

OpenMpEngine::~OpenMpEngine() {
    stop();
    ring();
    leader_.join();
}

const char* OpenMpEngine::refusal_of_pause() const noexcept {
    return "a task of the engine " HEDDLE_ENGINE
           " cannot be paused inside a parallel region of its own, whose stack belongs to the thread: let it "
           "wait before or after that";
}

bool OpenMpEngine::spawn(Task& task) {
    if (alone_ || spawned_.load(std::memory_order_relaxed) >= kMostSpawned) return false;
    spawned_.fetch_add(1, std::memory_order_relaxed);
    openmp::make_run(*this, task);
    return true;
}

void OpenMpEngine::run(Task& task) noexcept {
    spawned_.fetch_sub(1, std::memory_order_relaxed);
    work(&task);
}

void OpenMpEngine::call_thread() {
    // Inside a task the thread may be in another region, of the program's.
    if (has_arrived() && !alone_ && host_.frame() == nullptr) return openmp::make_answer(*this);
    call_wanted_.store(true, std::memory_order_relaxed);
    ring();
}

void OpenMpEngine::ring() noexcept {
    full_fence();
    if (!dozes_.load(std::memory_order_relaxed)) return;
    bell_.fetch_add(1, std::memory_order_relaxed);
    futex_wake(bell_, 1);
}

bool OpenMpEngine::doze(uint32_t seen, Nanoseconds longest) noexcept {
    const Time until = longest == Nanoseconds::max() ? Time::max() : SteadyClock().now() + longest;
    while (bell_.load(std::memory_order_relaxed) == seen) {
        if (until != Time::max() && SteadyClock().now() >= until) return false;
        futex_wait(bell_, seen, until);
    }
    return true;
}

/// It needs little, and has no seat; but it stays on the CPUs that the engine may be given.
void OpenMpEngine::become_leader(int threads) {
    alone_ = threads == 1;
    if (alone_) join();
    if (options_.bind) {
        const auto mask = options_.cpus.to_native();
        pthread_setaffinity_np(pthread_self(), mask.size() * sizeof(unsigned long),
                               reinterpret_cast<const cpu_set_t*>(mask.data()));
    }
    for (int parked = options_.workers + 1; parked < threads; ++parked) openmp::make_park(*this);
}

void OpenMpEngine::lead(int threads) noexcept {
    cpu_set_t before;
    pthread_getaffinity_np(pthread_self(), sizeof(before), &before);
    become_leader(threads);
    bool rang = true, seated = true;
    Time cleared{};
    while (true) {
        seated |= make_call();
        const uint32_t seen = bell_.load(std::memory_order_relaxed);
        dozes_.store(true, std::memory_order_relaxed);
        full_fence();
        const bool more = call_wanted_.load(std::memory_order_relaxed);
        if (!more && stops()) break;
        // Where nobody has a CPU any more, or will, there is nothing to look after.
        seated |= called() || spawned_.load(std::memory_order_relaxed) > 0;
        if (!more && !host_.polling_services().empty())
            rang = poll(seen);
        else if (!more)
            rang = doze(seen, seated ? kIdleDelay : Nanoseconds::max());
        dozes_.store(false, std::memory_order_relaxed);
        const Time now = SteadyClock().now();
        if (rang && now - cleared < kIdleDelay) continue;
        seated = seats_.clear_idle();
        cleared = now;
    }
    if (options_.bind) pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
    led_.store(1);
    futex_wake(led_, INT_MAX);
}

/// False: nobody wants one.
bool OpenMpEngine::make_call() noexcept {
    if (!call_wanted_.load(std::memory_order_relaxed)) return false;
    call_wanted_.store(false, std::memory_order_relaxed);
    if (alone_)
        work(nullptr);
    else
        openmp::make_answer(*this);
    return true;
}

/// For a while, as doze(): calls the services, and dozes a little longer each time that none of them is done.
bool OpenMpEngine::poll(uint32_t seen) noexcept {
    PollingServices& services = host_.polling_services();
    const Time until = SteadyClock().now() + kIdleDelay;
    PollingPause pause;
    while (!services.empty() && SteadyClock().now() < until) {
        if (host_.poll()) pause.restart();
        if (doze(seen, pause.take())) return true;
    }
    return false;
}

void OpenMpEngine::park() noexcept {
    while (led_.load() == 0) futex_wait(led_, 0, Time::max());
}

/// It needs memory once, and others will give some back.
void OpenMpEngine::join() noexcept {
    while (!has_arrived()) {
        try {
            arrive();
        } catch (const std::bad_alloc&) {
            std::this_thread::yield();
        }
    }
}

void OpenMpEngine::part() noexcept {
    if (has_arrived()) depart();
}

namespace {

const EngineFactory kFactory = engine_factory<OpenMpEngine>(
    HEDDLE_ENGINE,
    [] { return std::string(openmp::runtime_name()) + ", OpenMP " + std::to_string(openmp::standard()); },
    &openmp::kKernels);

}  // namespace
}  // namespace heddle

extern "C" __attribute__((visibility("default"))) const heddle::EngineFactory* heddle_engine() {
    return &heddle::kFactory;
}
