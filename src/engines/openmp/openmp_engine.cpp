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

void OpenMpEngine::make_call() {
    make_or_want(openmp::make_answer, call_wanted_);
}

void OpenMpEngine::make_poll() {
    make_or_want(openmp::make_service_call, poll_wanted_);
}

void OpenMpEngine::make_or_want(void (*make)(openmp::Work&), std::atomic<bool>& wanted) {
    if (is_between_tasks() && !alone_) {
        make(*this);
        return ring_if(dozes_long_);
    }
    wanted.store(true, std::memory_order_relaxed);
    ring();
}

void OpenMpEngine::ring() noexcept {
    ring_if(dozes_);
}

void OpenMpEngine::ring_if(const std::atomic<bool>& dozes) noexcept {
    full_fence();
    if (!dozes.load(std::memory_order_relaxed)) return;
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
    const bool known = pthread_getaffinity_np(pthread_self(), sizeof(before), &before) == 0;
    become_leader(threads);
    bool seated = true;
    Time cleared{};
    while (true) {
        seated |= make_wanted();
        const uint32_t seen = bell_.load(std::memory_order_relaxed);
        dozes_long_.store(!seated, std::memory_order_relaxed);
        dozes_.store(true, std::memory_order_relaxed);
        full_fence();
        const bool more = call_wanted_.load(std::memory_order_relaxed) || poll_wanted_.load();
        if (!more && stops()) break;
        seated |= called();
        const bool rang = more || doze(seen, seated ? kIdleDelay : Nanoseconds::max());
        dozes_.store(false, std::memory_order_relaxed);
        dozes_long_.store(false, std::memory_order_relaxed);
        const Time now = SteadyClock().now();
        if (rang && now - cleared < kIdleDelay) {
            seated = true;
            continue;
        }
        seated = seats_.clear_idle();
        cleared = now;
    }
    if (options_.bind && known) pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
    led_.store(1);
    futex_wake(led_, INT_MAX);
}

bool OpenMpEngine::make_wanted() noexcept {
    const bool call = call_wanted_.load(std::memory_order_relaxed) && call_wanted_.exchange(false);
    const bool poll_too = poll_wanted_.load(std::memory_order_relaxed) && poll_wanted_.exchange(false);
    if (call) alone_ ? answer_call() : openmp::make_answer(*this);
    if (poll_too) alone_ ? poll() : openmp::make_service_call(*this);
    return call || poll_too;
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
    &openmp::kKernels, no_problem, [] { (void)openmp::cpus(); });

}  // namespace
}  // namespace heddle

extern "C" __attribute__((visibility("default"))) const heddle::EngineFactory* heddle_engine() {
    return &heddle::kFactory;
}
