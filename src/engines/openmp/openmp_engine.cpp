#include "engines/openmp/openmp_engine.hpp"

#include <pthread.h>

#include <algorithm>
#include <climits>
#include <exception>
#include <string>
#include <utility>

#include "base/full_fence.hpp"
#include "base/signals_blocked.hpp"
#include "cores/futex.hpp"
#include "heddle/error.hpp"
#include "tasks/data_state.hpp"
#include "tasks/producer_rest.hpp"

namespace heddle {
namespace {

/// Tasks that call a thread to the heap, at once: they need room in the runtime too.
constexpr int kMostCalls = 32;

std::atomic<uint64_t> last_id{0};

}  // namespace

/// What the calling thread is in the region of the engine with that id.
struct OpenMpEngine::Here {
    uint64_t engine = 0;
    Hand* hand = nullptr;
};
thread_local OpenMpEngine::Here OpenMpEngine::here;

OpenMpEngine::OpenMpEngine(const EngineOptions& options)
    : host_(options.host),
      options_(options),
      most_calls_(std::min(options.workers, kMostCalls)),
      id_(++last_id),
      seats_(options) {}

OpenMpEngine::~OpenMpEngine() {
    seats_.stop();
    if (!has_feeder_.load()) return;
    stop_.store(true);
    ring();
    feeder_.join();
}

/// With the first task: a runtime that has none has no threads.
void OpenMpEngine::start() {
    const SignalsBlocked blocked;
    try {
        feeder_.start([this] { openmp::region(*this, options_.workers + kSpares + 1); },
                      openmp::keeps_threads());
    } catch (const std::system_error& error) {
        throw Error(ErrorCode::kLimit,
                    std::string("the engine " HEDDLE_ENGINE " cannot create its thread: ") + error.what());
    }
    has_feeder_.store(true);
}

void OpenMpEngine::insert(Lane&, Task& task) {
    std::call_once(started_, [this] { start(); });
    Task* first = inserted_.load(std::memory_order_relaxed);
    do {
        task.next = first;
        // release: the feeder sees the task; seq_cst, so that a feeder that is about to doze sees it or is
        // seen by ring().
    } while (
        !inserted_.compare_exchange_weak(first, &task, std::memory_order_seq_cst, std::memory_order_relaxed));
    if (first == nullptr) ring();
}

void OpenMpEngine::ring() noexcept {
    full_fence();
    if (!dozes_.load(std::memory_order_relaxed)) return;
    bell_.fetch_add(1, std::memory_order_relaxed);
    futex_wake(bell_, 1);
}

void OpenMpEngine::services_arrived() {
    if (host_.polling_services().empty()) return;
    std::call_once(started_, [this] { start(); });
    ring();
}

OpenMpEngine::Hand& OpenMpEngine::hand() {
    if (here.engine == id_) return *here.hand;
    auto hand = std::make_unique<Hand>();
    hand->seat = &seats_.enter();
    here = {id_, hand.get()};
    const std::lock_guard guard(mutex_);
    hands_.push_back(std::move(hand));
    return *here.hand;
}

void OpenMpEngine::depart() noexcept {
    if (here.engine == id_) seats_.leave(*here.hand->seat);
    here = {};
    if (options_.bind && pthread_equal(pthread_self(), feeder_thread_) != 0)
        pthread_setaffinity_np(feeder_thread_, sizeof(before_), &before_);
}

bool OpenMpEngine::begin(Hand& hand) {
    if (hand.depth++ > 0) return true;
    const bool seated = seats_.begin(*hand.seat);
    hand.changes.fetch_add(1, std::memory_order_relaxed);
    return seated;
}

void OpenMpEngine::end(Hand& hand) {
    if (--hand.depth > 0) return;
    hand.changes.fetch_add(1, std::memory_order_relaxed);
    (void)seats_.end(*hand.seat);
}

void OpenMpEngine::run(Task& task) noexcept {
    Hand& own = hand();
    (void)begin(own);
    run_chain(&task);
    end(own);
    if (ended_.fetch_add(1, std::memory_order_seq_cst) + 1 == ring_at_.load(std::memory_order_seq_cst))
        ring();
}

void OpenMpEngine::announce(Task& task, uintptr_t event) noexcept {
    // Not in a list here: the heap has places of its own.
    task.next = reinterpret_cast<Task*>(event);
    try {
        ready_.push(task);
    } catch (const std::bad_alloc&) {
        // It is run before its turn.
        Hand& own = hand();
        (void)begin(own);
        run_chain(&task);
        return end(own);
    }
    call();
}

void OpenMpEngine::ready(Lane&, Task& task) {
    std::call_once(started_, [this] { start(); });
    task.next = nullptr;
    ready_.push(task);
    call();
    notify();
}

void OpenMpEngine::call() {
    full_fence();
    if (calls_.load(std::memory_order_relaxed) < most_calls_) ring();
}

void OpenMpEngine::run_announced() noexcept {
    Hand& own = hand();
    ++own.calls;
    if (begin(own)) {
        while (Task* task = ready_.pop(true)) {
            run_chain(task);
            // To be asked back for something else than a task is possible in between alone.
            if (own.depth == 1 && own.seat->should_leave()) break;
        }
    }
    end(own);
    --own.calls;
    calls_.fetch_sub(1, std::memory_order_seq_cst);
    if (!ready_.empty()) call();
}

void OpenMpEngine::run_chain(Task* task) {
    Lane* lane = &host_.lane();
    while (task != nullptr) {
        const auto event = reinterpret_cast<uintptr_t>(std::exchange(task->next, nullptr));
        Task* const continuation = host_.run(lane, *task);
        if (event != 0) {
            openmp::fulfil(event);
            if (ended_.fetch_add(1, std::memory_order_seq_cst) + 1 ==
                ring_at_.load(std::memory_order_seq_cst))
                ring();
        }
        task = continuation;
        if (task == nullptr) continue;
        task->next = nullptr;
        if (ready_.empty()) continue;
        try {
            ready_.push(*task);
            task = ready_.pop(true);
        } catch (const std::bad_alloc&) {
            // It is run before its turn.
        }
    }
    host_.flush(*lane);
}

void OpenMpEngine::park() noexcept {
    if (pthread_equal(pthread_self(), feeder_thread_) != 0) {
        const std::lock_guard guard(mutex_);
        --(released_ > 0 ? released_ : spares_);
        return;
    }
    Hand& own = hand();
    own.changes.fetch_add(1, std::memory_order_relaxed);
    seats_.stand_up(*own.seat);
    std::unique_lock lock(mutex_);
    unparked_.wait(lock, [this] { return released_ > 0; });
    --released_;
    lock.unlock();
    own.changes.fetch_add(1, std::memory_order_relaxed);
}

void OpenMpEngine::wait_until(Lane& lane, const std::function<bool()>& reached) {
    host_.flush(lane);
    if (here.engine != id_ || here.hand->depth == 0) return news_.wait(reached);
    Hand& own = *here.hand;
    while (!reached()) {
        if (Task* task = ready_.pop(true))
            run_chain(task);
        else
            without_cpu(own, [&] { news_.wait([&] { return reached() || !ready_.empty(); }); });
    }
}

void OpenMpEngine::sleep_in_task(const std::function<void()>& sleep) {
    if (here.engine != id_ || here.hand->depth == 0) return sleep();
    host_.flush(host_.lane());
    without_cpu(*here.hand, sleep);
}

/// The thread's CPU is for others meanwhile, with a spare thread where there is one.
void OpenMpEngine::without_cpu(Hand& own, const std::function<void()>& sleep) {
    bool spare;
    {
        const std::lock_guard guard(mutex_);
        spare = spares_ > 0;
        if (!spare && blocked_ + 1 >= hands_at_all_)
            throw Error(ErrorCode::kLimit, "too many tasks of the engine " HEDDLE_ENGINE
                                           " wait inside: no thread would be left to run what "
                                           "they wait for. The engine native can have any number of them");
        ++blocked_;
        if (spare) {
            // Perhaps before it parks.
            --spares_;
            ++released_;
            unparked_.notify_one();
        }
    }
    // Others are called to the heap meanwhile.
    calls_.fetch_sub(own.calls, std::memory_order_seq_cst);
    if (!ready_.empty()) call();
    seats_.stand_up(*own.seat);
    /// Also where `sleep` throws.
    struct ComingBack {
        OpenMpEngine& engine;
        Hand& hand;
        bool spare;
        ~ComingBack() {
            (void)engine.seats_.begin(*hand.seat);
            engine.calls_.fetch_add(hand.calls);
            {
                const std::lock_guard guard(engine.mutex_);
                --engine.blocked_;
                if (spare) ++engine.spares_;
            }
            if (!spare) return;
            engine.to_park_.fetch_add(1);
            engine.ring();
        }
    } const coming_back{*this, own, spare};
    sleep();
}

bool OpenMpEngine::help(Lane&, uint64_t wanted) noexcept {
    // A thread outside the region cannot run a task; it gives those that can time.
    return rest_while(news_, wanted, [this] { return ended_.load(std::memory_order_relaxed); });
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
