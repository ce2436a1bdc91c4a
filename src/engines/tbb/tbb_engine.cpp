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

bool TbbEngine::spawn(Task& task) {
    group_.run([this, &task] { work(&task); });
    return true;
}

void TbbEngine::call_thread() {
    arena_.enqueue(group_.defer([this] { work(nullptr); }));
}

void TbbEngine::with_standing(const std::function<void()>& serve) {
    arena_.execute(serve);
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
void TbbEngine::sit_idle(Seats::Seat& seat) {
    while (seats_.sit_down(seat) && !seats_.end(seat)) {
    }
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
    const auto over = [&] { return services.empty() || stops(); };
    do {
        while (!over()) {
            PollingPause pause;
            while (!over() && !called()) {
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
