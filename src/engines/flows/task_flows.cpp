#include "engines/flows/task_flows.hpp"

#include <mutex>
#include <thread>
#include <utility>

namespace heddle {
namespace {

/// Flows that are kept for the next tasks. Others give their stacks back.
constexpr int kMostResting = 64;

}  // namespace

TaskFlows::TaskFlows(EngineHost& host, size_t stack_bytes, std::function<void()> woken, Next next)
    : host_(host),
      woken_callback_(std::move(woken)),
      next_(std::move(next)),
      pool_(StackPool::Options::of(stack_bytes)) {}

TaskFlows::~TaskFlows() {
    wait_for_wakers();
    for (Flow* spare : spare_)
        if (spare != nullptr) end(*spare);
    while (resting_ != nullptr) end(*std::exchange(resting_, resting_->next));
}

void TaskFlows::wait_for_wakers() const noexcept {
    while (waking_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
}

TaskFlows::Flow*& TaskFlows::current() noexcept {
    thread_local Flow* of_thread = nullptr;
    // Without it g++ sees that the address is always the same, and calls this once for both sides of a pause.
    asm volatile("" ::: "memory");
    return of_thread;
}

TaskFlows::Flow& TaskFlows::take(Lane& lane) {
    if (Flow* spare = std::exchange(spare_[lane.index], nullptr)) return *spare;
    const std::lock_guard guard(lock_);
    if (Flow* flow = resting_) {
        resting_ = flow->next;
        --resting_count_;
        return *flow;
    }
    Stack& stack = stacks_.take();
    try {
        return *new Flow(*this, stack);
    } catch (...) {
        stacks_.give_back(stack);
        throw;
    }
}

void TaskFlows::rest(Lane& lane, Flow& flow) noexcept {
    Flow*& spare = spare_[lane.index];
    if (spare == nullptr) {
        spare = &flow;
        return;
    }
    const std::lock_guard guard(lock_);
    if (resting_count_ == kMostResting) return end(flow);
    flow.next = std::exchange(resting_, &flow);
    ++resting_count_;
}

void TaskFlows::end(Flow& flow) noexcept {
    Stack& stack = flow.stack;
    delete &flow;
    stacks_.give_back(stack);
}

TaskFlows::Outcome TaskFlows::run(Lane& lane, Task& task, void* token) {
    Flow& flow = take(lane);
    flow.task = &task;
    flow.outcome = {};
    flow.outcome.token = token;
    return enter(lane, flow);
}

TaskFlows::Outcome TaskFlows::resume(Lane& lane) {
    Waiter* const woken = take_woken();
    return woken == nullptr ? Outcome{} : resume(lane, *woken);
}

Waiter* TaskFlows::take_woken() noexcept {
    if (!any_woken()) return nullptr;
    const std::lock_guard guard(lock_);
    Flow* const flow = first_woken_;
    if (flow == nullptr) return nullptr;
    first_woken_ = flow->next;
    if (first_woken_ == nullptr) last_woken_ = nullptr;
    any_woken_.store(first_woken_ != nullptr, std::memory_order_seq_cst);
    return flow;
}

TaskFlows::Outcome TaskFlows::enter(Lane& lane, Flow& flow) {
    Stay stay;
    flow.stay = &stay;
    Flow* const outer = std::exchange(current(), &flow);
    TaskFrame* const frame = host_.swap_frame(nullptr);
    Fiber::switch_to(stay.home, flow.fiber);
    (void)host_.swap_frame(frame);
    current() = outer;
    // Paused: it may be somebody else's by now.
    if (!stay.ended) return {};
    const Outcome outcome = flow.outcome;
    rest(lane, flow);
    return outcome;
}

void TaskFlows::main(void* flow) {
    Flow& self = *static_cast<Flow*>(flow);
    while (true) {
        TaskFlows& owner = self.owner;
        Lane* lane = &owner.host_.lane();
        for (Task* task = self.task; task != nullptr;) {
            owner.modes_.apply();  // the task before may have left others
            self.outcome.continuation = owner.host_.run(lane, *task);
            task =
                owner.next_ ? owner.next_(*lane, std::exchange(self.outcome.continuation, nullptr)) : nullptr;
        }
        self.outcome.ended = true;
        self.stay->ended = true;
        Fiber::switch_to(self.fiber, self.stay->home);
    }
}

void TaskFlows::suspend(Announcement publish, void (*first)(void* token)) {
    Flow& self = *current();
    if (!std::exchange(self.outcome.paused, true)) first(self.outcome.token);
    TaskFrame* const frame = host_.swap_frame(nullptr);
    struct Telling {
        Announcement publish;
        Flow& flow;
    } telling{publish, self};
    Fiber::switch_to(self.fiber, self.stay->home,
                     {[](void* argument) noexcept {
                          const Telling told = *static_cast<Telling*>(argument);
                          if (!told.publish.call(told.publish.argument, told.flow)) told.flow.wake();
                      },
                      &telling});
    (void)host_.swap_frame(frame);
}

void TaskFlows::wake(Flow& flow) noexcept {
    waking_.fetch_add(1, std::memory_order_relaxed);
    {
        const std::lock_guard guard(lock_);
        flow.next = nullptr;
        (last_woken_ == nullptr ? first_woken_ : last_woken_->next) = &flow;
        last_woken_ = &flow;
        any_woken_.store(true, std::memory_order_seq_cst);
    }
    woken_callback_();
    waking_.fetch_sub(1, std::memory_order_release);
}

}  // namespace heddle
