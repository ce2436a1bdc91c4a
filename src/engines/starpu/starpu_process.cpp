#include "engines/starpu/starpu_process.hpp"

#include <pthread.h>
#include <starpu_scheduler.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>

#include "base/full_fence.hpp"
#include "base/signals_blocked.hpp"
#include "base/spin_pause.hpp"
#include "cores/futex.hpp"
#include "engines/starpu/starpu_engine.hpp"
#include "engines/starpu/starpu_folder.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

/// How long a worker without a task keeps its CPU.
constexpr Nanoseconds kIdleDelay = std::chrono::milliseconds(5);
/// And how long it looks for one before it sleeps: to be woken takes longer than most insertions.
constexpr Nanoseconds kLinger = std::chrono::microseconds(20);

StarPu* started = nullptr;  // written once, under start_mutex
bool given_up = false;      // StarPU runs, and nobody calls its drivers; under start_mutex
std::mutex start_mutex;

// The policy. Tasks that are not ours are those of a program that uses StarPU beside us.
std::mutex strangers_mutex;
starpu_task *first_stranger = nullptr, *last_stranger = nullptr;
std::atomic<int> strangers{0};

int push_task(starpu_task* job) {
    if (StarPuEngine* engine = StarPuEngine::of(*job)) {
        starpu_push_task_end(job);
        engine->became_ready(*job);
        return 0;
    }
    {
        const std::lock_guard guard(strangers_mutex);
        job->next = nullptr;
        (last_stranger == nullptr ? first_stranger : last_stranger->next) = job;
        last_stranger = job;
        starpu_push_task_end(job);
        strangers.fetch_add(1);
    }
    started->ring();
    return 0;
}

starpu_task* pop_stranger() {
    const std::lock_guard guard(strangers_mutex);
    starpu_task* const job = first_stranger;
    if (job == nullptr) return nullptr;
    first_stranger = job->next;
    if (first_stranger == nullptr) last_stranger = nullptr;
    strangers.fetch_sub(1);
    return job;
}

starpu_task* pop_task(unsigned) {
    StarPu::Worker* worker = StarPu::here();
    if (worker == nullptr) return nullptr;
    starpu_task* job = worker->serves != nullptr ? worker->serves->next() : pop_stranger();
    if (job != nullptr) worker->in_hand = worker->serves != nullptr;
    return job;
}

starpu_sched_policy* policy() {
    static starpu_sched_policy ours = [] {
        starpu_sched_policy made{};
        made.init_sched = made.deinit_sched = [](unsigned) {};
        made.add_workers = made.remove_workers = [](unsigned, int*, unsigned) {};
        made.push_task = push_task;
        made.pop_task = pop_task;
        made.policy_name = "heddle";
        made.policy_description = "tasks of heddle's engines, each on its CPUs";
        made.worker_type = STARPU_WORKER_LIST;
        return made;
    }();
    return &ours;
}

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
    const std::lock_guard guard(start_mutex);
    if (given_up) return "there was no thread to run its tasks when it was started: start this program anew";
    if (started == nullptr && starpu_is_initialized() != 0)
        return "this program has started StarPU itself, with workers that heddle cannot confine: let it make "
               "its Runtime before it calls starpu_init()";
    return "";
}

StarPu& StarPu::of_process() {
    if (const std::string reason = problem(); !reason.empty()) throw Error(ErrorCode::kUnavailable, reason);
    const std::lock_guard guard(start_mutex);
    if (started == nullptr) {
        auto* const fresh = new StarPu;
        try {
            fresh->start();
        } catch (...) {
            delete fresh;
            throw;
        }
        started = fresh;
    }
    return *started;
}

void StarPu::start() {
    // What it says of itself, its first calibration included, is nothing for the user's terminal.
    setenv("STARPU_SILENT", "1", 0);
    const int count = workers_here();
    starpu_conf conf;
    starpu_conf_init(&conf);
    conf.precedence_over_environment_variables = 1;
    conf.ncpus = count;
    conf.ncuda = conf.nopencl = conf.nmic = conf.nmpi_ms = 0;
    conf.catch_signals = 0;
    conf.sched_policy = policy();
    conf.driver_spinning_backoff_min = conf.driver_spinning_backoff_max = 1;
    // Where they begin; from their first task on each goes where its seat is.
    conf.use_explicit_workers_bindid = 1;
    for (unsigned i = 0; i < STARPU_NMAXWORKERS; ++i) conf.workers_bindid[i] = i;
    std::vector<starpu_driver> drivers(static_cast<size_t>(count));
    for (size_t i = 0; i < drivers.size(); ++i) {
        drivers[i].type = STARPU_CPU_WORKER;
        drivers[i].id.cpu_id = static_cast<unsigned>(i);
    }
    conf.not_launched_drivers = drivers.data();
    conf.n_not_launched_drivers = static_cast<unsigned>(count);
    const SignalsBlocked blocked;
    const StarPuFolder alone;
    if (const int error = starpu_init(&conf); error != 0)
        throw Error(ErrorCode::kUnavailable,
                    std::string("StarPU does not start: starpu_init says ") + std::strerror(-error));
    for (int i = 0; i < count; ++i) {
        auto* const worker = new Worker{i, drivers[static_cast<size_t>(i)]};
        try {
            std::thread([this, worker] { work(*worker); }).detach();
        } catch (const std::system_error& error) {
            delete worker;
            // Those that there are do all the work.
            if (i > 0) break;
            given_up = true;
            throw Error(ErrorCode::kLimit,
                        std::string("the engine starpu cannot create its threads: ") + error.what());
        }
    }
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
    left_.wait(lock, nobody);
}

void StarPu::ring() noexcept {
    full_fence();
    if (sleepers_.load(std::memory_order_relaxed) == 0) return;
    bell_.fetch_add(1, std::memory_order_relaxed);
    futex_wake(bell_, 1);
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
    for (size_t i = 0;; ++i) {
        StarPuEngine* engine;
        {
            const std::lock_guard guard(mutex_);
            if (i >= engines_.size()) return false;
            engine = engines_[i];
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
    if (strangers.load() == 0) return false;
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
    return strangers.load() > 0 || for_each([](const StarPuEngine& engine) { return engine.wants_worker(); });
}

void StarPu::sleep(uint32_t seen, Nanoseconds longest) noexcept {
    futex_wait(bell_, seen, longest == Nanoseconds::max() ? Time::max() : SteadyClock().now() + longest);
}

void StarPu::work(Worker& worker) noexcept {
    here() = &worker;
    // StarPU binds its workers; Seats does so here, and else the thread is free.
    pthread_getaffinity_np(pthread_self(), sizeof(worker.free), &worker.free);
    starpu_driver_init(&worker.driver);
    pthread_setaffinity_np(pthread_self(), sizeof(worker.free), &worker.free);
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
