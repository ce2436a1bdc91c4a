#include "engines/starpu/starpu_process.hpp"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "base/environment.hpp"
#include "base/full_fence.hpp"
#include "base/signals_blocked.hpp"
#include "base/spin_pause.hpp"
#include "cores/futex.hpp"
#include "engines/forked.hpp"
#include "engines/starpu/starpu_engine.hpp"
#include "engines/starpu/starpu_folder.hpp"
#include "engines/starpu/starpu_opencl.hpp"
#include "engines/starpu/starpu_policy.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

/// How long a worker without a task keeps its CPU.
constexpr Nanoseconds kIdleDelay = std::chrono::milliseconds(5);
/// And how long it looks for one before it sleeps: to be woken takes longer than most insertions.
constexpr Nanoseconds kLinger = std::chrono::microseconds(20);
/// A device's worker looks so long whether there is something to do while devices are used, and then so
/// often.
constexpr Nanoseconds kLook = std::chrono::microseconds(100), kDeviceNap = std::chrono::microseconds(50);

StarPu* started = nullptr;  // written once, under start_mutex
bool given_up = false;      // StarPU runs, and nobody calls its drivers; under start_mutex
std::mutex start_mutex;

/// StarPU would take a policy that it names in place of ours, which serves our tasks alone.
class WithoutPolicyOfUser {
  public:
    WithoutPolicyOfUser() {
        if (const char* const name = std::getenv(kName)) name_ = name;
        if (name_) unset_variable(kName);
    }
    ~WithoutPolicyOfUser() {
        if (name_) set_variable(kName, *name_);
    }
    WithoutPolicyOfUser(const WithoutPolicyOfUser&) = delete;
    WithoutPolicyOfUser& operator=(const WithoutPolicyOfUser&) = delete;

  private:
    static constexpr const char* kName = "STARPU_SCHED";
    std::optional<std::string> name_;
};

int workers_here() {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    const bool known = sched_getaffinity(0, sizeof(mask), &mask) == 0;
    return std::clamp(known ? CPU_COUNT(&mask) : 1, 1, StarPu::kMostWorkers);
}

}  // namespace

StarPu::Worker*& StarPu::here() noexcept {
    thread_local Worker* of_thread = nullptr;
    asm volatile("" ::: "memory");  // as TaskFlows::current()
    return of_thread;
}

std::string StarPu::problem() {
    if (std::string reason = LibraryThreads::problem("StarPU"); !reason.empty()) return reason;
    const std::lock_guard guard(start_mutex);
    if (given_up) return "there was no thread to run its tasks when it was started: start this program anew";
    if (started == nullptr && starpu_is_initialized() != 0)
        return "this program has started StarPU itself, with workers that heddle cannot confine: let it make "
               "its Runtime before it calls starpu_init()";
    return "";
}

StarPu& StarPu::of_process(bool with_devices) {
    if (const std::string reason = problem(); !reason.empty()) throw Error(ErrorCode::kUnavailable, reason);
    const std::lock_guard guard(start_mutex);
    if (started == nullptr) {
        auto* const fresh = new StarPu;
        try {
            fresh->start(with_devices);
        } catch (...) {
            // Once StarPU runs, threads may be there that use it, for good.
            if (!given_up) delete fresh;
            throw;
        }
    }
    return *started;
}

StarPu& StarPu::running() noexcept {
    return *started;
}

void StarPu::start(bool with_devices) {
    LibraryThreads::begin();
    // What it says of itself, its first calibration included, is nothing for the user's terminal.
    if (std::getenv("STARPU_SILENT") == nullptr) set_variable("STARPU_SILENT", "1");
    keep_variables();  // OpenCL's drivers, which StarPU asks, change them
    std::vector<starpu_driver> drivers;
    if (with_devices) drivers = starpu_opencl_drivers();
    starpu_sched_policy* policy = starpu_policy::of_process(!drivers.empty());
    if (policy == nullptr) {
        drivers.clear();
        policy = starpu_policy::of_process(false);
    }
    const size_t device_count = drivers.size();
    const int count = workers_here();
    for (int i = 0; i < count; ++i) {
        starpu_driver& driver = drivers.emplace_back();
        driver.type = STARPU_CPU_WORKER;
        driver.id.cpu_id = static_cast<unsigned>(i);
    }
    const WithoutPolicyOfUser ours_alone;
    starpu_conf conf;
    starpu_conf_init(&conf);
    conf.precedence_over_environment_variables = 1;
    conf.ncpus = count;
    conf.nopencl = static_cast<int>(device_count);
    conf.ncuda = conf.nmic = conf.nmpi_ms = 0;
    conf.catch_signals = 0;
    conf.sched_policy = policy;
    conf.driver_spinning_backoff_min = conf.driver_spinning_backoff_max = 1;
    // Where they begin; from their first task on each goes where its seat is.
    conf.use_explicit_workers_bindid = 1;
    for (unsigned i = 0; i < STARPU_NMAXWORKERS; ++i)
        conf.workers_bindid[i] = i % static_cast<unsigned>(count);
    conf.not_launched_drivers = drivers.data();
    conf.n_not_launched_drivers = static_cast<unsigned>(drivers.size());
    const SignalsBlocked blocked;
    const StarPuFolder alone;
    started = this;  // its policy may be asked
    if (const int error = starpu_init(&conf); error != 0) {
        started = nullptr;
        throw Error(ErrorCode::kUnavailable,
                    std::string("StarPU does not start: starpu_init says ") + std::strerror(-error));
    }
    try {
        start_workers(drivers, device_count);
        for (size_t i = 0; i < device_count; ++i)
            devices_.push_back(starpu_opencl_device(static_cast<int>(i)));
    } catch (...) {
        given_up = true;
        throw;
    }
}

/// The first `with_devices` of them have devices. Returns when those are initialized.
void StarPu::start_workers(std::span<const starpu_driver> drivers, size_t with_devices) {
    devices_to_start_ = static_cast<int>(with_devices);
    for (size_t i = 0; i < drivers.size(); ++i) {
        const bool has_device = i < with_devices;
        auto* const worker = new Worker{has_device ? 0 : static_cast<int>(i - with_devices), drivers[i]};
        worker->has_device = has_device;
        try {
            std::thread([this, worker] {
                worker->has_device ? work_on_device(*worker) : work(*worker);
            }).detach();
        } catch (const std::system_error& error) {
            delete worker;
            // Those that there are do all the work; but StarPU places what devices can do on all that it
            // knows.
            if (with_devices == 0 && i > 0) break;
            throw Error(ErrorCode::kLimit,
                        std::string("the engine starpu cannot create its threads: ") + error.what());
        }
    }
    for (int left; (left = devices_to_start_.load()) > 0;) devices_to_start_.wait(left);
}

void StarPu::join(StarPuEngine& engine) {
    const std::lock_guard guard(mutex_);
    engines_.push_back(&engine);
}

void StarPu::leave(StarPuEngine& engine) {
    const auto nobody = [&] { return engine.visitors == 0; };
    std::unique_lock lock(mutex_);
    left_.wait(lock, nobody);
    lock.unlock();
    // While workers that go elsewhere still find it: the seat that one has here is given up before it gets
    // another.
    engine.rest_all();
    lock.lock();
    std::erase(engines_, &engine);
    ++departures_;
    left_.wait(lock, nobody);
}

void StarPu::ring() noexcept {
    full_fence();
    if (sleepers_.load(std::memory_order_relaxed) == 0) return;
    bell_.fetch_add(1, std::memory_order_relaxed);
    futex_wake(bell_, 1);
}

void StarPu::ring_all() noexcept {
    full_fence();
    if (sleepers_.load(std::memory_order_relaxed) == 0) return;
    bell_.fetch_add(1, std::memory_order_relaxed);
    futex_wake(bell_, std::numeric_limits<int>::max());
}

void StarPu::drive_devices() noexcept {
    if (users_of_devices_.fetch_add(1) == 0) users_of_devices_.notify_all();
}

StarPuEngine* StarPu::choose(size_t& from) {
    const std::lock_guard guard(mutex_);
    for (size_t i = 0; i < engines_.size(); ++i) {
        StarPuEngine* engine = engines_[(from + i) % engines_.size()];
        if (!engine->wants_worker()) continue;
        from += i + 1;
        ++engine->visitors;
        return engine;
    }
    return nullptr;
}

void StarPu::end_visit(StarPuEngine& engine) {
    const std::lock_guard guard(mutex_);
    if (--engine.visitors == 0) left_.notify_all();
}

template <class Visit>
bool StarPu::for_each(Visit visit) {
    size_t i = 0;
    uint64_t departures = 0;
    while (true) {
        StarPuEngine* engine;
        {
            const std::lock_guard guard(mutex_);
            // What was behind one that has gone is in its place now: from the beginning.
            if (std::exchange(departures, departures_) != departures_) i = 0;
            if (i >= engines_.size()) return false;
            engine = engines_[i++];
            ++engine->visitors;
        }
        const bool enough = visit(*engine);
        end_visit(*engine);
        if (enough) return true;
    }
}

bool StarPu::others_have_work(const StarPuEngine& engine) {
    const std::lock_guard guard(mutex_);
    return std::ranges::any_of(
        engines_, [&](const StarPuEngine* other) { return other != &engine && other->wants_worker(); });
}

void StarPu::rest_but_in(Worker& worker, const StarPuEngine* but) {
    (void)for_each([&](StarPuEngine& engine) {
        if (&engine != but) engine.rest(worker);
        return false;
    });
    worker.seated = but;
    pthread_setaffinity_np(pthread_self(), sizeof(worker.free), &worker.free);
}

bool StarPu::poll() {
    bool done = false;
    (void)for_each([&](StarPuEngine& engine) {
        done = engine.has_services() && engine.poll();
        return done;
    });
    return done;
}

bool StarPu::serve_strangers(Worker& worker) {
    if (!starpu_policy::any_stranger()) return false;
    // Twice: a driver runs what it took when it is called again.
    for (int i = 0; i < 2; ++i) starpu_driver_run_once(&worker.driver);
    return true;
}

bool StarPu::linger() {
    const Time until = SteadyClock().now() + kLinger;
    do {
        for (int i = 0; i < 16; ++i) spin_pause();
        if (has_work()) return true;
    } while (SteadyClock().now() < until);
    return false;
}

bool StarPu::has_work() {
    return starpu_policy::any_stranger() ||
           for_each([](const StarPuEngine& engine) { return engine.wants_worker(); });
}

void StarPu::sleep(uint32_t seen, Nanoseconds longest) noexcept {
    futex_wait(bell_, seen, longest == Nanoseconds::max() ? Time::max() : SteadyClock().now() + longest);
}

void StarPu::begin(Worker& worker) noexcept {
    here() = &worker;
    // StarPU binds its workers; Seats does so here, and else the thread is free.
    pthread_getaffinity_np(pthread_self(), sizeof(worker.free), &worker.free);
    starpu_driver_init(&worker.driver);
    pthread_setaffinity_np(pthread_self(), sizeof(worker.free), &worker.free);
}

void StarPu::work_on_device(Worker& worker) noexcept {
    begin(worker);
    devices_to_start_.fetch_sub(1);
    devices_to_start_.notify_all();
    const SteadyClock clock;
    Time busy = clock.now();
    while (true) {
        users_of_devices_.wait(0);
        const Time before = clock.now();
        // Runs what it has, and copies for itself and for others.
        starpu_driver_run_once(&worker.driver);
        const Time after = clock.now();
        if (after - before >= kDeviceNap) busy = after;
        if (after - busy < kLook)
            spin_pause();
        else
            std::this_thread::sleep_for(kDeviceNap);
    }
}

void StarPu::work(Worker& worker) noexcept {
    begin(worker);
    size_t turn = 0;
    bool rested = false;
    PollingPause pause;
    while (true) {
        if (StarPuEngine* engine = choose(turn)) {
            // Who waits for a CPU in one engine must not have one in another, which somebody may wait for.
            if (worker.seated != engine) rest_but_in(worker, engine);
            try {
                engine->serve(worker);
            } catch (const std::exception&) {
                // No memory for what a worker needs to begin with: later, or another worker.
                sleep(bell_.load(std::memory_order_relaxed), kIdleDelay);
            }
            end_visit(*engine);
            rested = false;
            continue;
        }
        if (serve_strangers(worker)) continue;
        if (!rested && linger()) continue;
        const uint32_t seen = bell_.load(std::memory_order_relaxed);
        sleepers_.fetch_add(1, std::memory_order_relaxed);
        full_fence();
        const bool work = has_work();
        const bool services =
            !work && for_each([](const StarPuEngine& engine) { return engine.has_services(); });
        if (!work && services && !polling_.exchange(true)) {
            if (poll()) pause.restart();
            polling_.store(false);
            sleep(seen, pause.take());
        } else if (!work) {
            sleep(seen, rested && !services ? Nanoseconds::max() : kIdleDelay);
        }
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
        if (work || rested || bell_.load(std::memory_order_relaxed) != seen) continue;
        rest_but_in(worker, nullptr);
        rested = true;
    }
}

}  // namespace heddle
