// The side of the engine that makes tasks: what the feeder does in its region.
#include <pthread.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "base/full_fence.hpp"
#include "base/spin_pause.hpp"
#include "cores/futex.hpp"
#include "engines/openmp/openmp_engine.hpp"
#include "tasks/data_state.hpp"

namespace heddle {
namespace {

/// While the region is full: how long a thread must have had nothing to do before more is made all the same.
constexpr Nanoseconds kStall = std::chrono::milliseconds(1);
/// How many then.
constexpr uint64_t kExtra = 32;
/// The feeder looks for more to make for so long before it sleeps, and at the clock after so many looks.
constexpr Nanoseconds kLinger = std::chrono::microseconds(20);
constexpr int kLooks = 16;
/// After so many tasks it looks whether those take less than kFine to be made and run.
constexpr uint64_t kLookEvery = 256;
constexpr Nanoseconds kFine = std::chrono::microseconds(2);
constexpr Nanoseconds kNapOfWorker = std::chrono::microseconds(500);
/// How long a thread without a task keeps its CPU, once or twice.
constexpr Nanoseconds kIdleDelay = std::chrono::milliseconds(5);

}  // namespace

bool OpenMpEngine::doze(uint32_t seen, Nanoseconds longest) noexcept {
    const Time until = longest == Nanoseconds::max() ? Time::max() : SteadyClock().now() + longest;
    while (bell_.load(std::memory_order_relaxed) == seen) {
        if (until != Time::max() && SteadyClock().now() >= until) return false;
        futex_wait(bell_, seen, until);
    }
    return true;
}

Task* OpenMpEngine::take_inserted() noexcept {
    Task* newest = inserted_.exchange(nullptr, std::memory_order_seq_cst);
    Task* oldest = nullptr;
    while (newest != nullptr) {
        Task* const before = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = before;
    }
    return oldest;
}

/// The feeder needs little, and has no seat; but it stays on the CPUs that the engine may be given.
void OpenMpEngine::become_feeder(int threads) {
    feeder_thread_ = pthread_self();
    alone_ = threads == 1;
    pthread_getaffinity_np(feeder_thread_, sizeof(before_), &before_);
    if (options_.bind) {
        const auto mask = options_.cpus.to_native();
        pthread_setaffinity_np(feeder_thread_, mask.size() * sizeof(unsigned long),
                               reinterpret_cast<const cpu_set_t*>(mask.data()));
    }
    // Where OMP_THREAD_LIMIT leaves few there are fewer.
    const int spares = std::max(threads - 1 - options_.workers, 0);
    {
        const std::lock_guard guard(mutex_);
        hands_at_all_ = threads - 1;
        spares_ = spares;
    }
    // Before any task.
    for (int spare = 0; spare < spares; ++spare) openmp::make_park(*this);
}

void OpenMpEngine::feed(int threads) noexcept {
    become_feeder(threads);
    room_ = static_cast<uint64_t>(openmp::room_for(threads)) * 5 / 8;
    window_ = room_;
    PollingServices& services = host_.polling_services();
    bool rang = true, seated = true;
    Time cleared{};
    while (true) {
        while (Task* oldest = take_inserted())
            while (oldest != nullptr) make(*std::exchange(oldest, oldest->next));
        make_calls();
        if (rang && services.empty() && linger()) continue;
        end_naps();
        const uint32_t seen = bell_.load(std::memory_order_relaxed);
        dozes_.store(true, std::memory_order_relaxed);
        full_fence();
        const bool more = has_more();
        if (!more && stop_.load()) break;
        // Without tasks, and when nobody has a CPU any more, there is nothing to look after.
        const bool quiet = !rang && !seated && ended_.load() == made_;
        if (!more && !services.empty())
            rang = poll(seen);
        else if (!more)
            rang = doze(seen, quiet ? Nanoseconds::max() : kIdleDelay);
        dozes_.store(false, std::memory_order_relaxed);
        const Time now = SteadyClock().now();
        if (rang && now - cleared < kIdleDelay) continue;
        seated = seats_.clear_idle();
        cleared = now;
    }
    const std::lock_guard guard(mutex_);
    released_ = INT_MAX / 2;
    unparked_.notify_all();
}

bool OpenMpEngine::has_more() const noexcept {
    return inserted_.load(std::memory_order_relaxed) != nullptr || to_park_.load() > 0 ||
           (!ready_.empty() && calls_.load() < most_calls_);
}

/// To be rung costs who inserts more than a fine task. True: there is more to be made.
bool OpenMpEngine::linger() const noexcept {
    const Time until = SteadyClock().now() + kLinger;
    do {
        for (int i = 0; i < kLooks; ++i) {
            if (has_more()) return true;
            spin_pause();
        }
    } while (!stop_.load(std::memory_order_relaxed) && SteadyClock().now() < until);
    return false;
}

/// For a while, as doze(): calls the services, and dozes a little longer each time that none of them is done.
bool OpenMpEngine::poll(uint32_t seen) {
    PollingServices& services = host_.polling_services();
    const Time until = SteadyClock().now() + kIdleDelay;
    PollingPause pause;
    while (!services.empty() && SteadyClock().now() < until) {
        if (host_.poll()) pause.restart();
        if (doze(seen, pause.take())) return true;
    }
    return false;
}

void OpenMpEngine::make(Task& task) {
    if (made_ - ended_.load(std::memory_order_relaxed) >= window_) wait_for_room();
    ++made_;
    task.next = nullptr;
    if (alone_) return run(task);
    if (made_ % kLookEvery == 0) keep_pace();
    if (task.priority != 0) ordered_ = true;
    constexpr size_t kFew = 32;
    const std::byte* few[2 * kFew];
    std::vector<const std::byte*> many;
    const std::byte** in = few;
    const size_t count = task.accesses;
    if (count > kFew) {
        many.resize(2 * count);
        in = many.data();
    }
    const std::byte** const inout = in + count;
    size_t ins = 0, inouts = 0;
    for (uint32_t i = 0; i < task.accesses; ++i)
        if (task.access(i)->mode != AccessMode::kIn)
            inout[inouts++] = reinterpret_cast<const std::byte*>(task.access(i)->data);
    for (uint32_t i = 0; i < task.accesses; ++i) {
        const auto* address = reinterpret_cast<const std::byte*>(task.access(i)->data);
        if (task.access(i)->mode == AccessMode::kIn &&
            std::find(inout, inout + inouts, address) == inout + inouts)
            in[ins++] = address;
    }
    openmp::make(*this, task, {in, ins, inout, inouts}, ordered_);
}

/// libgomp has one lock for all tasks of a region. Where tasks are fine a second worker only waits for it,
/// and takes the CPU of who makes them.
void OpenMpEngine::keep_pace() {
    const Time before = std::exchange(looked_, SteadyClock().now());
    const uint64_t behind = made_ - ended_.load(std::memory_order_relaxed);
    if (looked_ - before > kLookEvery * kFine || behind > kLookEvery) return end_naps();
    if (napping_.load(std::memory_order_relaxed) > 0) return;
    for (int i = 1; i < options_.workers; ++i) {
        napping_.fetch_add(1, std::memory_order_relaxed);
        openmp::make_nap(*this);
    }
}

void OpenMpEngine::end_naps() noexcept {
    if (napping_.load(std::memory_order_relaxed) == 0) return;
    coarse_.fetch_add(1, std::memory_order_relaxed);
    futex_wake(coarse_, INT_MAX);
}

/// For a bounded time, so nothing depends on its end.
void OpenMpEngine::nap() noexcept {
    const uint32_t seen = coarse_.load(std::memory_order_relaxed);
    if (pthread_equal(pthread_self(), feeder_thread_) == 0) {
        // It is not one that had nothing to do: somebody_idled().
        Hand& own = hand();
        own.changes.fetch_add(1, std::memory_order_relaxed);
        futex_wait(coarse_, seen, SteadyClock().now() + kNapOfWorker);
        own.changes.fetch_add(1, std::memory_order_relaxed);
    }
    napping_.fetch_sub(1, std::memory_order_relaxed);
}

/// The runtime holds as many tasks as it may without running some on this thread. A thread without a task for
/// a whole while says that none of them could run, and then there may be more: what they all wait for may be
/// among those that come.
void OpenMpEngine::wait_for_room() {
    window_ = std::max(room_, window_ / 2);
    end_naps();
    (void)somebody_idled();
    while (made_ - ended_.load(std::memory_order_relaxed) >= window_) {
        const uint32_t seen = bell_.load(std::memory_order_relaxed);
        const uint64_t goal = made_ - window_ * 3 / 4;
        ring_at_.store(goal, std::memory_order_relaxed);
        dozes_.store(true, std::memory_order_relaxed);
        full_fence();
        const bool rang = ended_.load(std::memory_order_relaxed) >= goal || doze(seen, kStall);
        dozes_.store(false, std::memory_order_relaxed);
        make_calls();
        if (!rang && somebody_idled()) window_ = made_ - ended_.load() + kExtra;
    }
}

bool OpenMpEngine::somebody_idled() {
    const std::lock_guard guard(mutex_);
    int idle = hands_at_all_ - static_cast<int>(hands_.size());
    for (const auto& hand : hands_) {
        const uint32_t now = hand->changes.load(std::memory_order_relaxed);
        if (now == std::exchange(hand->seen, now) && now % 2 == 0) ++idle;
    }
    return idle > 0;
}

void OpenMpEngine::make_calls() {
    while (!ready_.empty() && calls_.load() < most_calls_) {
        calls_.fetch_add(1);
        if (alone_)
            run_announced();
        else
            openmp::make_call(*this);
    }
    for (; to_park_.load() > 0; to_park_.fetch_sub(1)) openmp::make_park(*this);
}

}  // namespace heddle
