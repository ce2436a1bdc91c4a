#include "engines/guests/guest_engine.hpp"

#include <climits>
#include <new>
#include <utility>

#include "base/full_fence.hpp"
#include "base/spin_pause.hpp"
#include "cores/futex.hpp"
#include "engines/guests/guest_thread.hpp"
#include "engines/native/lane_counts.hpp"
#include "engines/native/line_look.hpp"
#include "engines/patient_lane.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

/// Who lingers looks at the clock after so many looks.
constexpr int kLooks = 16;
constexpr Nanoseconds kBusyNap = std::chrono::microseconds(500);
/// Out of the line at once.
constexpr uint32_t kFromLine = 8;
/// Tasks on top of each other, where each waits and cannot be suspended.
constexpr int kMostNested = 16;

std::atomic<uint64_t> last_id{0};

}  // namespace

GuestEngine::Here& GuestEngine::here() noexcept {
    thread_local Here of_thread;
    // Without it g++ sees that the address is always the same, and calls this once for both sides of a pause.
    asm volatile("" ::: "memory");
    return of_thread;
}

/// While it lives a flow is entered from here, which is left on this thread.
struct GuestEngine::Entered {
    explicit Entered(const GuestEngine& engine)
        : outer(std::exchange(here().construct, engine.construct_here())) {}
    ~Entered() { here().construct = outer; }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    const uintptr_t outer;
};

GuestEngine::GuestEngine(const EngineOptions& options)
    : options_(options),
      seats_(options),
      host_(options.host),
      id_(++last_id),
      flows_(
          options.host, options.stack_bytes, [this] { call(); },
          [this](Lane& lane, Task* continuation) { return next(lane, continuation); }) {}

void GuestEngine::stop() noexcept {
    stop_.store(true);
    seats_.stop();
    for (std::atomic<uint32_t>* bell : {&coarse_, &poll_bell_}) {
        bell->fetch_add(1);
        futex_wake(*bell, INT_MAX);
    }
    flows_.wait_for_wakers();  // who may still call
}

Seats::Seat& GuestEngine::arrive() {
    Seats::Seat& seat = seats_.enter();
    here() = {};
    here().engine = id_;
    here().seat = &seat;
    return seat;
}

void GuestEngine::depart() noexcept {
    seats_.leave(*here().seat);
    here() = {};
}

bool GuestEngine::has_arrived() const noexcept {
    return here().engine == id_ && !here().substitute;
}

bool GuestEngine::is_between_tasks() const noexcept {
    return has_arrived() && here().depth <= 1 && here().nested == 0 && host_.frame() == nullptr;
}

void GuestEngine::ready(Lane& lane, Task& task) {
    if (task.priority != 0 || !urgent_.empty()) {
        urgent_.push(task);
    } else if (is_between_tasks()) {
        lane.queue.push_own(task);
    } else {
        incoming_.push(task);
    }
    call();
}

void GuestEngine::call() noexcept {
    full_fence();
    if (called() || called_.exchange(true, std::memory_order_seq_cst)) return;
    try {
        make_call();
        if (call_failed_.load(std::memory_order_relaxed)) call_failed_.store(false);
    } catch (...) {
        called_.store(false);
        call_failed_.store(true);
        news_.notify();
        return;
    }
    if (!poll_naps_.load(std::memory_order_seq_cst)) return;
    poll_bell_.fetch_add(1, std::memory_order_relaxed);
    futex_wake(poll_bell_, 1);
}

void GuestEngine::answer() noexcept {
    called_.store(false, std::memory_order_relaxed);
    full_fence();
}

void GuestEngine::answer_call() noexcept {
    if (!has_arrived()) return come_home();
    // False: the engine goes.
    if (here().depth == 0 && !seats_.begin(*here().seat)) return;
    Here& self = here();
    Lane& lane = patient_lane(host_);
    ++self.depth;
    const int left = std::exchange(self.left, kLookEvery);
    serve(lane);
    self.left = left;
    if (--self.depth == 0) {
        // Where the CPU was asked back the next is waited for with nothing in hand.
        if (!seats_.end(*self.seat)) {
            if (has_queued()) call();
            lost_seat(*self.seat);
        }
        if (std::exchange(self.is_to_nap, false) || (self.to_look <= 0 && is_to_nap())) nap();
    }
    if (has_queued()) call();
}

void GuestEngine::serve(Lane& lane) noexcept {
    Here& self = here();
    self.of_use = false;
    self.pace.came(look());
    answer();
    do {
        while (has_queued()) {
            self.left = self.pace.probing() ? kProbe : kLookEvery;
            while (self.left > 0 && !self.is_to_nap && serve_one(lane))
                if (self.depth > 1 || self.seat->should_leave()) return;
            if (self.left <= 0) self.is_to_nap = is_to_nap();
            if (self.is_to_nap) return;
        }
    } while (linger());
}

bool GuestEngine::serve_one(Lane& lane) noexcept {
    if (Waiter* woken = flows_.take_woken()) {
        if (has_queued()) call();
        resume(lane, *woken);
        return true;
    }
    Task* const task = fetch(lane);
    if (task == nullptr) return false;
    run(lane, *task);
    return true;
}

/// Best first, and of those without a priority what this thread made possible itself, then the oldest.
Task* GuestEngine::fetch(Lane& lane) noexcept {
    Task* const first = find(lane);
    // Another thread does what this one will not be at, where there is a seat for it.
    const bool takes_the_one_seat = here().substitute && options_.workers == 1;
    if (first != nullptr && !takes_the_one_seat && !called() && has_queued()) call();
    return first;
}

Task* GuestEngine::find(Lane& lane) noexcept {
    if (Task* urgent = urgent_.pop(false)) return urgent;
    if (Task* newest = lane.queue.pop_own()) return newest;
    Task* oldest = nullptr;
    if (incoming_.steal(&oldest, 1) == 1) return oldest;
    if (Task* first = from_line(lane)) return first;
    if (Task* stolen = steal(lane)) return stolen;
    return urgent_.pop(true);
}

Task* GuestEngine::steal(Lane& lane) noexcept {
    LaneTable& lanes = host_.all_lanes();
    const uint32_t count = lanes.size();
    Task* oldest = nullptr;
    for (uint32_t i = 1; i < count; ++i)
        if (lanes[(lane.index + i) % count].queue.steal(&oldest, 1) == 1) return oldest;
    return nullptr;
}

bool GuestEngine::has_queued() const noexcept {
    if (flows_.any_woken() || !urgent_.empty() || incoming_.size() > 0 || host_.in_line() > 0) return true;
    LaneTable& lanes = host_.all_lanes();
    for (uint32_t i = lanes.size(); i-- > 0;)
        if (lanes[i].queue.size() > 0) return true;
    return false;
}

Task* GuestEngine::from_line(Lane& lane) noexcept {
    if (host_.in_line() == 0) return nullptr;
    Here& self = here();
    if (!self.substitute && options_.workers > 1 && !self.of_use) {
        self.is_to_nap = line_needs_nobody(host_, fine());
        if (self.is_to_nap) return nullptr;
        self.of_use = true;
    }
    Task* const first = host_.next_in_line(lane, kFromLine);
    if (first == nullptr) return nullptr;
    Task* rest = std::exchange(first->next, nullptr);
    while (rest != nullptr) keep(lane, *std::exchange(rest, rest->next));
    return first;
}

bool GuestEngine::linger() noexcept {
    // Services have their turn when this returns.
    if (stops() || !host_.polling_services().empty()) return false;
    // One is enough.
    if (called_.exchange(true, std::memory_order_seq_cst)) return false;
    const Time until = SteadyClock().now() + kLinger;
    while (!has_queued() && !here().seat->should_leave() && SteadyClock().now() < until)
        for (int i = 0; i < kLooks && !has_queued(); ++i) spin_pause();
    answer();
    return has_queued();
}

/// A call was taken elsewhere in the runtime, where a task of ours had gone.
void GuestEngine::come_home() noexcept {
    answer();
    if (has_queued()) call();
}

void GuestEngine::keep(Lane& lane, Task& task) noexcept {
    if (task.in_order && host_.put_back(lane, task)) return;
    try {
        incoming_.push(task);
    } catch (...) {
        // No memory to keep it: it runs here and now.
        for (Task* now = &task; now != nullptr;) now = host_.run_here(lane, *now);
        host_.flush(lane);
    }
}

/// It may run for long: what ended before it is told first.
void GuestEngine::resume(Lane& lane, Waiter& woken) noexcept {
    host_.flush(lane);
    const Entered entered(*this);
    (void)flows_.resume(lane, woken);
    host_.flush(lane);
}

void GuestEngine::run(Lane& lane, Task& task) noexcept {
    count(lane);
    try {
        const Entered entered(*this);
        (void)flows_.run(lane, task, nullptr);
    } catch (...) {
        // No memory for a stack: on the thread's own, where it cannot pause.
        const FloatModes modes = FloatModes::current();
        flows_.modes().apply();
        if (Task* continuation = host_.run_here(lane, task)) keep(lane, *continuation);
        modes.apply();
    }
    host_.flush(lane);
}

void GuestEngine::count(Lane& lane) noexcept {
    count_one(lane.ran);
    Here& self = here();
    --self.to_look;
    --self.left;
}

Task* GuestEngine::next(Lane& lane, Task* continuation) noexcept {
    Here& self = here();
    // On top of another task it has run what it was asked to.
    const bool goes_on = self.nested == 0 && self.depth == 1 && self.left > 0 && !self.seat->should_leave();
    if (!goes_on) {
        if (continuation != nullptr) keep(lane, *continuation);
        return nullptr;
    }
    Task* next = most_urgent(lane, continuation);
    if (next == nullptr && !self.is_to_nap && !flows_.any_woken()) next = fetch(lane);
    if (next != nullptr) count(lane);
    return next;
}

Task* GuestEngine::most_urgent(Lane& lane, Task* continuation) noexcept {
    if (urgent_.empty()) return continuation;
    // Those with less than 0 come behind what lies in the queues.
    if (continuation == nullptr) return urgent_.pop(false);
    if (continuation->in_order) {
        // In the heap it would lose its place.
        Task* const urgent = urgent_.pop(false);
        if (urgent == nullptr) return continuation;
        keep(lane, *continuation);
        return urgent;
    }
    try {
        urgent_.push(*continuation);
    } catch (const std::bad_alloc&) {
        return continuation;
    }
    return urgent_.pop(true);
}

void GuestEngine::suspend(Announcement publish) {
    // What the runtime has on the stack of its constructs belongs to the thread.
    if (construct_here() != here().construct) throw Error(ErrorCode::kLimit, refusal_of_pause());
    flows_.suspend(publish, [](void*) {});
}

/// On top of one that waits and cannot be paused.
bool GuestEngine::help_in_task(Lane& lane) noexcept {
    Here& self = here();
    if (self.engine != id_ || self.nested == kMostNested) return false;
    ++self.nested;
    host_.flush(lane);
    Waiter* const woken = flows_.take_woken();
    Task* const task = woken == nullptr ? fetch(lane) : nullptr;
    self.is_to_nap = false;
    if (woken != nullptr)
        resume(lane, *woken);
    else if (task != nullptr)
        run(lane, *task);
    --self.nested;
    if (has_queued()) call();
    return woken != nullptr || task != nullptr;
}

Pace::Look GuestEngine::look() noexcept {
    Pace::Look look = look_around(host_.all_lanes(), host_.lane(), fine_, here().watch);
    look.fine = fine();
    return look;
}

bool GuestEngine::is_to_nap() noexcept {
    Here& self = here();
    self.to_look = kLookEvery;
    const Pace::Advice advice = self.pace.ran(look());
    if (advice == Pace::Advice::kCoarse) tasks_are_coarse();
    return advice == Pace::Advice::kNap;
}

/// Who naps looks at the queues afterwards, and nobody is called for them until then; but services have their
/// turn where somebody was called.
void GuestEngine::nap() noexcept {
    are_fine_.store(true, std::memory_order_relaxed);
    const bool looks_later =
        host_.polling_services().empty() && !called_.exchange(true, std::memory_order_seq_cst);
    const int nappers = napping_.fetch_add(1, std::memory_order_seq_cst) + 1;
    const uint32_t seen = coarse_.load(std::memory_order_relaxed);
    const bool others = options_.callers_work || nappers < options_.workers;
    if (others && !stops()) {
        Here& self = here();
        futex_wait(coarse_, seen, SteadyClock().now() + self.pace.longest_nap(nappers * kBusyNap));
        (void)self.pace.napped(look());
        self.to_look = kProbe;
    }
    napping_.fetch_sub(1, std::memory_order_relaxed);
    if (looks_later) answer();
}

void GuestEngine::tasks_are_coarse() noexcept {
    are_fine_.store(false, std::memory_order_relaxed);
    if (napping_.load(std::memory_order_relaxed) == 0) return;
    coarse_.fetch_add(1, std::memory_order_relaxed);
    futex_wake(coarse_, INT_MAX);
}

}  // namespace heddle
