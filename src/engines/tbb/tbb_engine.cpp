#include "engines/tbb/tbb_engine.hpp"

#include <oneapi/tbb/task.h>
#include <oneapi/tbb/version.h>

#include <climits>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "base/full_fence.hpp"
#include "base/spin_pause.hpp"
#include "base/thread_probe.hpp"
#include "cores/futex.hpp"
#include "engines/forked.hpp"
#include "engines/native/lane_counts.hpp"
#include "engines/patient_lane.hpp"
#include "engines/tbb/tbb_kernels.hpp"
#include "heddle/error.hpp"
#include "tasks/producer_rest.hpp"

namespace heddle {
namespace {

/// A thread that has served the queue looks for more for so long, and at the clock after so many looks.
constexpr Nanoseconds kLinger = std::chrono::microseconds(20);
constexpr int kLooks = 16;
/// After so many tasks a thread looks whether it is of use; after a nap so few tell.
constexpr int kLookEvery = 64;
constexpr int kProbe = 4;
constexpr Nanoseconds kBusyNap = std::chrono::microseconds(500);
/// Tasks on top of each other, where each waits and cannot be suspended.
constexpr int kMostNested = 16;

std::atomic<uint64_t> last_id{0};

/// oneTBB goes on without threads where it gets none, and then nobody runs a task.
EngineHost& expect_threads(EngineHost& host) {
    expect_thread_for("the engine tbb");
    return host;
}

}  // namespace

/// What a thread is in the arena where it is, of the engine with that id.
struct TbbEngine::Here {
    uint64_t engine = 0;
    Seats::Seat* seat = nullptr;
    int depth = 0;  ///< tasks of oneTBB on its stack
    /// oneTBB's, where the innermost flow was entered: in any other one that flow cannot be left.
    tbb::task_group_context* context = nullptr;
    int nested = 0;        ///< calls of help() in tasks
    bool spawned = false;  ///< oneTBB has tasks of this thread's, perhaps run since
    int to_look = 0;       ///< so many tasks before it looks whether it is of use
    Pace pace{};
    FineTasks::Watch watch{};
};

TbbEngine::Here& TbbEngine::here() noexcept {
    thread_local Here of_thread;
    // Without it g++ sees that the address is always the same, and calls this once for both sides of a pause.
    asm volatile("" ::: "memory");
    return of_thread;
}

/// While it lives a flow is entered from here, which is left on this thread.
struct TbbEngine::Entered {
    Entered() : outer(std::exchange(here().context, tbb::task::current_context())) {}
    ~Entered() { here().context = outer; }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    tbb::task_group_context* const outer;
};

void TbbEngine::Observer::on_scheduler_entry(bool worker) {
    // The thread that ends the engine is the only other one, and runs no tasks.
    if (!worker) return;
    Seats::Seat* seat = &engine_.seats_.enter();
    {
        const std::lock_guard guard(engine_.mutex_);
        ++engine_.inside_;
    }
    here() = {};
    here().engine = engine_.id_;
    here().seat = seat;
    engine_.sit_idle(*seat);
}

void TbbEngine::Observer::on_scheduler_exit(bool) {
    if (here().engine != engine_.id_) return;
    engine_.seats_.leave(*here().seat);
    here() = {};
    const std::lock_guard guard(engine_.mutex_);
    if (--engine_.inside_ == 0) engine_.left_.notify_all();
}

TbbEngine::TbbEngine(const EngineOptions& options)
    : host_(expect_threads(options.host)),
      workers_(options.workers),
      id_(++last_id),
      seats_(options),
      threads_(static_cast<size_t>(options.workers)),
      flows_(options.host, options.stack_bytes, [this] { call(); }),
      arena_(options.workers, 0),
      observer_(*this, arena_) {
    observer_.observe(true);
}

TbbEngine::~TbbEngine() noexcept {
    stop_.store(true);
    seats_.stop();
    flows_.wait_for_wakers();  // who may still call
    arena_.execute([this] { group_.wait(); });
    std::unique_lock lock(mutex_);
    left_.wait(lock, [this] { return inside_ == 0; });
    lock.unlock();
    observer_.observe(false);
}

bool TbbEngine::in_arena() const noexcept {
    return here().engine == id_;
}

void TbbEngine::spawn(Task* task) {
    group_.run([this, task] { work(task); });
    if (in_arena()) here().spawned = true;
}

void TbbEngine::ready(Lane&, Task& task) {
    if (task.priority != 0 || !urgent_.empty()) {
        urgent_.push(task);
    } else if (in_arena() && host_.frame() == nullptr) {
        // Inside a task the thread may be in another arena, of the program's.
        return spawn(&task);
    } else {
        incoming_.push(task);
    }
    call();
}

void TbbEngine::call() noexcept {
    full_fence();
    if (called_.load(std::memory_order_relaxed) || called_.exchange(true, std::memory_order_seq_cst)) return;
    try {
        arena_.enqueue(group_.defer([this] { work(nullptr); }));
    } catch (...) {
        // What is in the queues is fetched sooner or later; not so soon for want of memory.
        called_.store(false);
    }
}

/// Best first, and of those without a priority the oldest.
Task* TbbEngine::fetch() noexcept {
    if (Task* urgent = urgent_.pop(false)) return urgent;
    Task* oldest = nullptr;
    return incoming_.steal(&oldest, 1) == 1 ? oldest : urgent_.pop(true);
}

void TbbEngine::answer() noexcept {
    called_.store(false, std::memory_order_relaxed);
    full_fence();
}

void TbbEngine::serve(Lane& lane) {
    Here& self = here();
    answer();
    do {
        while (has_queued()) {
            Task* const task = flows_.any_woken() ? nullptr : fetch();
            // Another thread does what this one will not be at.
            if (has_queued()) call();
            self.spawned = false;
            task != nullptr ? run_chain(lane, task) : go_on_with_woken(lane);
            // What it made possible is oneTBB's, and comes before what is new.
            if (!self.spawned && self.depth == 1 && !self.seat->should_leave()) continue;
            if (has_queued()) call();
            return;
        }
    } while (linger());
}

bool TbbEngine::linger() noexcept {
    // Services have their turn when this returns.
    if (stop_.load(std::memory_order_relaxed) || !host_.polling_services().empty()) return false;
    // One is enough.
    if (called_.exchange(true, std::memory_order_seq_cst)) return false;
    const Time until = SteadyClock().now() + kLinger;
    while (!has_queued() && !here().seat->should_leave() && SteadyClock().now() < until)
        for (int i = 0; i < kLooks && !has_queued(); ++i) spin_pause();
    answer();
    return has_queued();
}

void TbbEngine::keep(Lane& lane, Task& task) noexcept {
    try {
        spawn(&task);
    } catch (...) {
        for (Task* now = &task; now != nullptr;) now = host_.run_here(lane, *now);
    }
}

void TbbEngine::work(Task* task) {
    if (!in_arena()) return come_home(task);
    // False: the engine goes, there are calls left, and no tasks.
    if (here().depth == 0 && !seats_.begin(*here().seat)) return;
    Here& self = here();
    Lane& lane = patient_lane(host_);
    ++self.depth;
    task == nullptr ? serve(lane) : run_chain(lane, task);
    // Where the CPU was asked back the next is waited for with nothing in hand.
    if (--self.depth > 0) return;
    if (!seats_.end(*self.seat)) sit_idle(*self.seat);
    if (self.to_look <= 0 || napping_.load(std::memory_order_relaxed) > 0) keep_pace();
}

/// With a CPU to look for tasks on, which others may have where there are none: oneTBB lets a thread sleep in
/// the arena, and tells nobody.
void TbbEngine::sit_idle(Seats::Seat& seat) {
    while (seats_.sit_down(seat) && !seats_.end(seat)) {
    }
}

void TbbEngine::keep_pace() {
    if (workers_ == 1) return;
    Here& self = here();
    self.to_look = kLookEvery;
    switch (self.pace.ran(look_around(host_.all_lanes(), host_.lane(), fine_, self.watch))) {
        case Pace::Advice::kGoOn:
            return;
        case Pace::Advice::kCoarse:
            return end_naps();
        case Pace::Advice::kNap:
            return nap();
    }
}

void TbbEngine::nap() {
    const int nappers = napping_.fetch_add(1, std::memory_order_seq_cst) + 1;
    const uint32_t seen = coarse_.load(std::memory_order_relaxed);
    if (nappers < workers_) {
        futex_wait(coarse_, seen, SteadyClock().now() + nappers * kBusyNap);
        Here& self = here();
        (void)self.pace.napped(look_around(host_.all_lanes(), host_.lane(), fine_, self.watch));
        self.to_look = kProbe;
    }
    napping_.fetch_sub(1, std::memory_order_relaxed);
}

void TbbEngine::end_naps() noexcept {
    if (napping_.load(std::memory_order_relaxed) == 0) return;
    coarse_.fetch_add(1, std::memory_order_relaxed);
    futex_wake(coarse_, INT_MAX);
}

/// A task was spawned, or a call stolen, in an arena of the program's, which a task of ours had entered.
void TbbEngine::come_home(Task* task) noexcept {
    answer();
    try {
        if (task != nullptr) incoming_.push(*task);
    } catch (...) {
        // No memory to keep it: it runs here and now.
        Lane& lane = patient_lane(host_);
        for (Task* now = task; now != nullptr;) now = host_.run_here(lane, *now);
        host_.flush(lane);
    }
    if (has_queued()) call();
}

void TbbEngine::run_chain(Lane& lane, Task* task) {
    while (task != nullptr) task = after(lane, run(lane, *task));
    host_.flush(lane);
}

void TbbEngine::go_on_with_woken(Lane& lane) {
    host_.flush(lane);  // it may run for long
    run_chain(lane, after(lane, resume(lane)));
}

TaskFlows::Outcome TbbEngine::resume(Lane& lane) {
    const Entered entered;
    return flows_.resume(lane);
}

TaskFlows::Outcome TbbEngine::run(Lane& lane, Task& task) noexcept {
    count_one(lane.ran);
    --here().to_look;
    try {
        const Entered entered;
        return flows_.run(lane, task, nullptr);
    } catch (...) {
        // No memory for a stack: on the thread's own, where it cannot pause.
        return {.ended = true, .continuation = host_.run_here(lane, task)};
    }
}

/// What this thread runs after a task that has ended or paused.
Task* TbbEngine::after(Lane& lane, const TaskFlows::Outcome& outcome) noexcept {
    const Here& self = here();
    if (self.depth > 1 || !self.seat->should_leave()) return most_urgent(outcome.continuation);
    if (outcome.continuation != nullptr) keep(lane, *outcome.continuation);
    return nullptr;
}

Task* TbbEngine::most_urgent(Task* continuation) noexcept {
    if (urgent_.empty()) return continuation;
    // Those with less than 0 come behind what oneTBB has, and what lies in the queue.
    if (continuation == nullptr) return urgent_.pop(false);
    try {
        urgent_.push(*continuation);
    } catch (const std::bad_alloc&) {
        return continuation;
    }
    return urgent_.pop(true);
}

void TbbEngine::suspend(Announcement publish) {
    // What oneTBB has on the stack of its algorithms belongs to the thread.
    if (tbb::task::current_context() != here().context)
        throw Error(
            ErrorCode::kLimit,
            "a task of the engine tbb cannot be paused inside an algorithm or an arena of oneTBB, whose "
            "stack belongs to the thread: let it wait before or after these");
    flows_.suspend(publish, [](void*) {});
}

void TbbEngine::wait_until(Lane& lane, const std::function<bool()>& reached) {
    host_.flush(lane);
    news_.wait(reached);
}

bool TbbEngine::help(Lane& lane, uint64_t wanted) noexcept {
    if (host_.frame() != nullptr && in_arena() && here().nested < kMostNested) {
        ++here().nested;
        host_.flush(lane);
        const bool woken = flows_.any_woken();
        Task* task = woken ? resume(lane).continuation : urgent_.pop(true);
        if (task == nullptr && !woken) task = incoming_.pop();
        for (Task* now = task; now != nullptr;) now = host_.run_here(lane, *now);
        --here().nested;
        host_.flush(lane);
        if (woken || task != nullptr) return true;
    }
    // A thread that is not the arena's cannot run a single task; it gives those that are time.
    return rest_while(news_, wanted, [this] { return ran_in(host_.all_lanes()); });
}

void TbbEngine::services_arrived() {
    if (host_.polling_services().empty() || polling_.exchange(true)) return;
    if (come_again()) return;
    polling_.store(false);
    throw std::bad_alloc();
}

/// Comes again behind what was called meanwhile, as long as there are services.
void TbbEngine::poll() noexcept {
    PollingServices& services = host_.polling_services();
    const auto over = [&] { return services.empty() || stop_.load(); };
    do {
        while (!over()) {
            PollingPause pause;
            while (!over() && !called_.load() && urgent_.empty()) {
                if (host_.poll()) pause.restart();
                const bool last = pause.longest();
                news_.nap(pause.take());
                // What else is in the arena, of this thread's too, has its turn.
                if (last) break;
            }
            if (over()) break;
            if (come_again()) return;
            work(nullptr);
        }
        polling_.store(false, std::memory_order_seq_cst);
        // One may have come meanwhile.
    } while (!over() && !polling_.exchange(true));
}

/// False: there is no memory for that, and an exception would end all that oneTBB has of this engine.
bool TbbEngine::come_again() noexcept {
    try {
        arena_.enqueue(group_.defer([this] { poll(); }));
        return true;
    } catch (...) {
        return false;
    }
}

namespace {

const EngineFactory kFactory = engine_factory<TbbEngine>(
    "tbb", [] { return std::string(TBB_runtime_version()); }, &kTbbKernels,
    [] { return LibraryThreads::problem("oneTBB"); });

}  // namespace
}  // namespace heddle

extern "C" __attribute__((visibility("default"))) const heddle::EngineFactory* heddle_engine() {
    return &heddle::kFactory;
}
