#include "engines/tbb/tbb_engine.hpp"

#include <oneapi/tbb/task.h>
#include <oneapi/tbb/version.h>

#include <new>
#include <string>

#include "base/thread_probe.hpp"
#include "engines/forked.hpp"
#include "engines/tbb/tbb_kernels.hpp"

namespace heddle {
namespace {

/// oneTBB goes on without threads where it gets none, and then nobody runs a task.
const EngineOptions& expect_threads(const EngineOptions& options) {
    expect_thread_for("the engine tbb");
    return options;
}

}  // namespace

void TbbEngine::Observer::on_scheduler_entry(bool worker) {
    // Others stand in, or end the engine.
    if (!worker) return;
    Seats::Seat& seat = engine_.arrive();
    {
        const std::lock_guard guard(engine_.mutex_);
        ++engine_.inside_;
    }
    engine_.sit_idle(seat);
}

void TbbEngine::Observer::on_scheduler_exit(bool) {
    if (!engine_.has_arrived()) return;
    engine_.depart();
    const std::lock_guard guard(engine_.mutex_);
    if (--engine_.inside_ == 0) engine_.left_.notify_all();
}

TbbEngine::TbbEngine(const EngineOptions& options)
    : GuestEngine(expect_threads(options)),
      threads_(static_cast<size_t>(options.workers)),
      arena_(options.workers + 1, 1),
      observer_(*this, arena_) {
    observer_.observe(true);
}

TbbEngine::~TbbEngine() noexcept {
    stop();
    arena_.execute([this] { group_.wait(); });
    std::unique_lock lock(mutex_);
    left_.wait(lock, [this] { return inside_ == 0; });
    lock.unlock();
    observer_.observe(false);
}

void TbbEngine::make_call() {
    arena_.enqueue(group_.defer([this] { answer_call(); }));
}

void TbbEngine::make_poll() {
    arena_.enqueue(group_.defer([this] { poll(); }));
}

void TbbEngine::as_on_its_threads(const std::function<void()>& serve) {
    // Who waits in an algorithm there takes nothing that was enqueued meanwhile on top of that.
    arena_.execute([&] { tbb::this_task_arena::isolate(serve); });
}

uintptr_t TbbEngine::construct_here() const noexcept {
    return reinterpret_cast<uintptr_t>(tbb::task::current_context());
}

const char* TbbEngine::refusal_of_pause() const noexcept {
    return "a task of the engine tbb cannot be paused inside an algorithm or an arena of oneTBB, whose stack "
           "belongs to the thread: let it wait before or after these";
}

/// With a CPU to look for tasks on, which others may have where there are none: oneTBB lets a thread sleep in
/// the arena, and tells nobody.
void TbbEngine::sit_idle(Seats::Seat& seat) noexcept {
    try {
        while (seats_.sit_down(seat) && !seats_.end(seat)) {
        }
    } catch (const std::bad_alloc&) {
        // It waits for one with its first task in hand.
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
