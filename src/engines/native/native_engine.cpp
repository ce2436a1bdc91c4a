#include "engines/native/native_engine.hpp"

#include <algorithm>
#include <climits>
#include <thread>
#include <utility>

#include "base/asymmetric_fence.hpp"
#include "base/spin_pause.hpp"
#include "cores/futex.hpp"
#include "engines/native/lane_counts.hpp"
#include "engines/native/line_look.hpp"
#include "tasks/task_place.hpp"
#include "tasks/waiter_place.hpp"

namespace heddle {
namespace {

/// A thread that waits looks after so many tasks whether it may stop, a worker whether it is of use.
constexpr int kLookEvery = 64;
/// A worker that napped takes so few, to see whether it is of use now.
constexpr int kProbe = 4;
/// A thread that is far ahead runs so many.
constexpr int kHelp = 512;
/// Tasks on top of each other, where each waits and there is no memory to pause it.
constexpr int kMostNested = 16;
/// A thread without work looks for some so long before it sleeps.
constexpr Nanoseconds kLinger = std::chrono::microseconds(20);
/// Of one worker; where several nap, each does so as many times longer.
constexpr Nanoseconds kNap = std::chrono::microseconds(500);

WorkerPoolOptions pool_options(const EngineOptions& options) {
    WorkerPoolOptions result;
    result.limits.max = std::max(1, options.workers - (options.callers_work ? 1 : 0));
    return result;
}

}  // namespace

NativeEngine::NativeEngine(const EngineOptions& options)
    : host_(options.host),
      cpus_(options.cpus),
      bind_(options.bind),
      callers_work_(options.callers_work),
      one_at_a_time_(options.workers == 1),
      stacks_(StackPool::Options::of(options.stack_bytes)),
      pool_(options.machine, options.provider, *this, pool_options(options)) {}

NativeEngine::~NativeEngine() {
    end_naps();
    pool_.stop();
    while (resuming_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
    for (const auto& here : flows_) {
        if (here == nullptr) continue;
        while (here->resting != nullptr) {
            Flow& flow = take_resting(*here);
            here->stacks.give_back(flow.stack);
            delete &flow;
        }
    }
}

void NativeEngine::resume(Flow& flow) noexcept {
    if (FlowsOfLane* const here = flows_in_use()) {
        resumed_.push(flow, here->resumed);
        return announce();
    }
    resuming_.fetch_add(1, std::memory_order_relaxed);
    resumed_.push(flow);
    announce();
    resuming_.fetch_sub(1, std::memory_order_release);
}

void NativeEngine::ready(Lane& lane, Task& task) {
    if (task.priority == 0 && (task.special & kPlaced) == 0 && lane.queue.push_favoured(task)) [[likely]]
        return announce();
    put(lane, task);
    announce();
}

void NativeEngine::put(Lane& lane, Task& task) {
    if (task.priority != 0) return urgent_.push(task);
    Lane& its = (task.special & kPlaced) == 0 ? lane : lane_for(lane, *task.notes().placement);
    if (&its == &lane)
        lane.queue.push_own(task);
    else
        its.queue.push(task);
}

/// A task that shall run somewhere lies in the queue of a worker there, if there is one; others may steal it.
Lane& NativeEngine::lane_for(Lane& own, const Placement& placement) noexcept {
    const CpuSet& cpus = placement.cpus;
    const uint32_t lanes = host_.all_lanes().size();
    for (uint32_t i = 0; i < lanes; ++i) {
        Lane& lane = host_.all_lanes()[(own.index + i) % lanes];
        if (cpus.contains(lane.cpu.load(std::memory_order_relaxed))) return lane;
    }
    return own;
}

void NativeEngine::wake_sleeper() noexcept {
    if (one_at_a_time_ && seat_taken_.load(std::memory_order_relaxed)) return pool_.work_arrived();
    news_.fetch_add(1, std::memory_order_relaxed);
    futex_wake(news_, 1);
}

void NativeEngine::notify() {
    onlookers_.notify();
    light_fence();
    if (sleepers_.load(std::memory_order_relaxed) == 0) return;
    news_.fetch_add(1, std::memory_order_relaxed);
    futex_wake(news_, INT_MAX);
}

Task* NativeEngine::steal(Lane& lane) noexcept {
    const uint32_t lanes = host_.all_lanes().size();
    Task* stolen[ReadyQueue::kMostStolen];
    const size_t most = flows(lane).pace.probing() ? kProbe : ReadyQueue::kMostStolen;
    for (uint32_t i = 1; i < lanes; ++i) {
        const size_t count = host_.all_lanes()[(lane.index + i) % lanes].queue.steal(stolen, most);
        if (count == 0) continue;
        for (size_t kept = 1; kept < count; ++kept) keep(lane, *stolen[kept]);
        if (count > 1) announce();
        return stolen[0];
    }
    return nullptr;
}

Task* NativeEngine::from_line(Lane& lane) noexcept {
    if (host_.in_line() == 0) return nullptr;
    FlowsOfLane& here = flows(lane);
    if (here.worker != nullptr && !one_at_a_time_ && !here.of_use) {
        here.spared = line_needs_nobody(host_, fine_.limit());
        if (here.spared) return nullptr;
        here.of_use = true;
    }
    Task* const first = host_.next_in_line(lane, here.pace.probing() ? kProbe : ReadyQueue::kMostStolen);
    if (first == nullptr) return nullptr;
    Task* rest = std::exchange(first->next, nullptr);
    if (rest == nullptr) return first;
    while (rest != nullptr) keep(lane, *std::exchange(rest, rest->next));
    announce();
    return first;
}

Task* NativeEngine::find_elsewhere(Lane& lane) noexcept {
    if (Task* task = from_line(lane)) return task;
    if (Task* task = steal(lane)) return task;
    if (urgent_.empty()) return nullptr;
    // What has ended may wake somebody, who comes before tasks of less than 0.
    host_.flush(lane);
    return resumed_.empty() ? urgent_.pop(true) : nullptr;
}

bool NativeEngine::may_have_work() noexcept {
    return has_tasks() || (!host_.polling_services().empty() && !polling_.load(std::memory_order_relaxed));
}

bool NativeEngine::has_tasks() noexcept {
    if (one_at_a_time_ && seat_taken_.load(std::memory_order_relaxed)) return false;
    if (!urgent_.empty() || !resumed_.empty() || host_.in_line() > 0) return true;
    const uint32_t lanes = host_.all_lanes().size();
    for (uint32_t i = 0; i < lanes; ++i)
        if (host_.all_lanes()[i].queue.size() > 0) return true;
    return false;
}

void NativeEngine::keep(Lane& lane, Task& task) noexcept {
    if (task.in_order && host_.put_back(lane, task)) return;
    try {
        lane.queue.push_own(task);
    } catch (const std::bad_alloc&) {
        // Without room for it it runs here and now, on the stack of a flow that is between two tasks.
        for (Task* now = &task; now != nullptr;) now = host_.run_here(lane, *now);
    }
}

bool NativeEngine::run_one(Worker& worker) {
    const auto leave = [&] { return worker.should_leave(); };
    Lane& lane = host_.lane();
    FlowsOfLane& here = flows(lane);
    Pace& pace = here.pace;
    lane.cpu.store(worker.cpu(), std::memory_order_relaxed);
    here.spared = here.of_use = false;
    bool seated, found;
    do {
        seated = !one_at_a_time_ || !seat_taken_.exchange(true);
        found = seated && enter(lane, &worker, pace.probing() ? kProbe : kLookEvery);
        host_.flush(lane);
        if (one_at_a_time_ && seated) seat_taken_.store(false);
    } while (!found && !pace.probing() && !here.spared && linger(leave));
    lane.cpu.store(-1, std::memory_order_relaxed);
    if (found) {
        announce();
        keep_pace(lane, worker);
        return true;
    }
    if (one_at_a_time_ && seated) tell_of_free_seat();
    if (pace.found_none(look_around(host_.all_lanes(), lane, fine_, here.watch), one_at_a_time_) ||
        here.spared) {
        nap(lane, worker);
        return true;
    }
    return seated && poll(leave);
}

/// Who brought a task meanwhile, waits for it and saw the seat taken sleeps; and where there is no memory for
/// its decisions the pool does not come back here.
void NativeEngine::tell_of_free_seat() noexcept {
    light_fence();  // with the heavy one in sleep()
    if (has_tasks()) announce();
}

bool NativeEngine::help(Lane& lane, uint64_t) noexcept {
    try {
        (void)flows(lane);
    } catch (const std::bad_alloc&) {
        return false;
    }
    if (host_.frame() != nullptr) return help_in_task(lane);
    if (!callers_work_) return false;
    const WaiterPlace place(cpus_, bind_);
    FlowsOfLane& here = flows(lane);
    here.has_more_to_insert = true;
    const bool found = help_here(lane, kHelp);
    here.has_more_to_insert = false;
    tell_of_free_seat();  // this thread may have others to do now
    return found;
}

/// For a task that waits and cannot be paused: another one runs on top of it, in this thread.
bool NativeEngine::help_in_task(Lane& lane) noexcept {
    FlowsOfLane& here = flows(lane);
    if (here.nested == kMostNested) return false;
    ++here.nested;
    Worker* const worker = here.worker;
    Flow* const current = here.current;
    const int budget = here.budget;
    const bool found_before = here.found;
    const bool has_more_to_insert = std::exchange(here.has_more_to_insert, false);
    // Without its worker: what is asked to leave its CPU cannot before the task on its stack has ended.
    const bool found = enter(lane, nullptr, 1);
    here.found = found_before;
    here.budget = budget;
    here.has_more_to_insert = has_more_to_insert;
    here.current = current;
    here.worker = worker;
    --here.nested;
    host_.flush(lane);
    return found;
}

bool NativeEngine::help_here(Lane& lane, int budget) {
    if (one_at_a_time_ && seat_taken_.exchange(true)) return false;
    // Workers that nap left this thread what they took for fine tasks: a few will tell.
    bool found = true;
    if (napping_.load(std::memory_order_relaxed) > 0) {
        const Time before = SteadyClock().now();
        const uint64_t ran = lane.ran.load(std::memory_order_relaxed);
        found = enter(lane, nullptr, kProbe);
        if (Pace::coarse(lane.ran.load(std::memory_order_relaxed) - ran, SteadyClock().now() - before))
            end_naps();
    }
    if (found) found = enter(lane, nullptr, budget);
    host_.flush(lane);
    if (one_at_a_time_) seat_taken_.store(false);
    return found;
}

void NativeEngine::keep_pace(Lane& lane, Worker& worker) {
    FlowsOfLane& here = flows(lane);
    switch (here.pace.ran(look_around(host_.all_lanes(), lane, fine_, here.watch))) {
        case Pace::Advice::kGoOn:
            return;
        case Pace::Advice::kCoarse:
            return end_naps();
        case Pace::Advice::kNap:
            return nap(lane, worker);
    }
}

void NativeEngine::nap(Lane& lane, Worker& worker) {
    FlowsOfLane& here = flows(lane);
    bool again = true;
    const int nappers = napping_.fetch_add(1, std::memory_order_relaxed) + 1;
    const uint32_t seen = coarse_.load(std::memory_order_relaxed);
    while (again && !worker.should_leave()) {
        const Nanoseconds longest = here.pace.longest_nap(nappers * kNap);
        futex_wait(coarse_, seen, SteadyClock().now() + longest);
        again = here.pace.napped(look_around(host_.all_lanes(), lane, fine_, here.watch)) && one_at_a_time_;
        if (coarse_.load(std::memory_order_relaxed) != seen) break;
    }
    napping_.fetch_sub(1, std::memory_order_relaxed);
}

void NativeEngine::end_naps() noexcept {
    if (napping_.load(std::memory_order_relaxed) == 0) return;
    coarse_.fetch_add(1, std::memory_order_relaxed);
    futex_wake(coarse_, INT_MAX);
}

template <class Leave>
bool NativeEngine::linger(const Leave& leave) {
    if (one_at_a_time_ || !host_.polling_services().empty()) return false;
    const Time until = SteadyClock().now() + kLinger;
    do {
        for (int i = 0; i < 16; ++i) spin_pause();
        if (leave()) return false;
        if (has_tasks()) return true;
    } while (SteadyClock().now() < until);
    return false;
}

void NativeEngine::wait_until(Lane& lane, const std::function<bool()>& reached) {
    host_.flush(lane);
    if (reached()) return;
    if (!callers_work_) return onlookers_.wait(reached);
    (void)flows(lane);
    WaiterPlace place(cpus_, bind_);
    do {
        place.look(pool_);
        if (!help_here(lane, kLookEvery) && !linger(reached) && !poll(reached))
            sleep([&] { return reached() || may_have_work(); }, Time::max());
    } while (!reached());
    light_fence();  // as in tell_of_free_seat()
    if (may_have_work()) announce();
}

void NativeEngine::sleep(const std::function<bool()>& reached, Time until) {
    const uint32_t seen = news_.load(std::memory_order_relaxed);
    sleepers_.fetch_add(1, std::memory_order_relaxed);
    heavy_fence();
    if (!reached() && !has_tasks()) futex_wait(news_, seen, until);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

/// A thread without work calls the services, and sleeps a little longer each time that none of them is done.
/// False: there are none, another thread is at it, or this one is to do something else.
bool NativeEngine::poll(const std::function<bool()>& leave) {
    PollingServices& services = host_.polling_services();
    if (services.empty() || polling_.exchange(true)) return false;
    PollingPause pause;
    while (!services.empty() && !has_tasks() && !leave()) {
        if (services.poll()) pause.restart();
        sleep(leave, SteadyClock().now() + pause.take());
    }
    polling_.store(false);
    return has_tasks();
}

void NativeEngine::services_arrived() {
    notify();
    announce();
}

extern const EngineFactory kNativeEngine;
const EngineFactory kNativeEngine{"native", [] { return std::string(); },
                                  [] { return std::string(HEDDLE_VERSION); },
                                  [](const EngineOptions& options) -> std::unique_ptr<Engine> {
                                      return std::make_unique<NativeEngine>(options);
                                  }};

}  // namespace heddle
