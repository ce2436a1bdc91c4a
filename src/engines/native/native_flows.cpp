#include <utility>

#include "engines/native/native_engine.hpp"
#include "heddle/error.hpp"
#include "tasks/frame.hpp"

namespace heddle {
namespace {

/// Flows that a lane keeps for its next pauses. Others give their stacks back.
constexpr uint32_t kMostResting = 32;
/// Of these, for pauses that have no other way, once there is no memory for more.
constexpr uint32_t kReserved = 4;

}  // namespace

void Flow::wake() noexcept {
    engine.resume(*this);
}

bool NativeEngine::may_go_on(FlowsOfLane& here) noexcept {
    return here.budget > 0 && !(here.worker != nullptr && here.worker->should_leave()) &&
           (!here.has_more_to_insert || has_spare(here));
}

bool NativeEngine::has_spare(FlowsOfLane& here) noexcept {
    if (here.resting != nullptr) return true;
    try {
        rest(here, make_flow(here));
    } catch (...) {
        return false;
    }
    return true;
}

FlowsOfLane& NativeEngine::make_flows(Lane& lane) {
    flows_[lane.index] = std::make_unique<FlowsOfLane>(stacks_);
    return *flows_[lane.index];
}

FlowsOfLane* NativeEngine::flows_in_use() noexcept {
    const Lane* const lane = lane_if_any(host_.all_lanes());
    FlowsOfLane* const here = lane == nullptr ? nullptr : flows_[lane->index].get();
    return here != nullptr && here->home != nullptr ? here : nullptr;
}

/// With `must` one of those in reserve will do, where there is no memory for another.
Flow& NativeEngine::take_flow(FlowsOfLane& here, bool must) {
    if (here.resting_count <= kReserved) {
        try {
            return make_flow(here);
        } catch (...) {
            if (!must || here.resting == nullptr) throw;
        }
    }
    return take_resting(here);
}

Flow& NativeEngine::take_resting(FlowsOfLane& here) noexcept {
    Flow& flow = *here.resting;
    here.resting = flow.next;
    --here.resting_count;
    return flow;
}

Flow& NativeEngine::make_flow(FlowsOfLane& here) {
    Stack& stack = here.stacks.take();
    try {
        return *new Flow(*this, stack, &NativeEngine::run_flow);
    } catch (...) {
        here.stacks.give_back(stack);
        throw;
    }
}

void NativeEngine::reserve(FlowsOfLane& here) noexcept {
    here.reserved = true;
    try {
        while (here.resting_count < kReserved) rest(here, make_flow(here));
    } catch (...) {
        // There are fewer then.
    }
}

/// `flow` is between two tasks and about to be left for another on this thread, or was left already.
void NativeEngine::rest(FlowsOfLane& here, Flow& flow) noexcept {
    flow.next = here.resting;
    here.resting = &flow;
    ++here.resting_count;
}

/// Where there is no memory for another one, a task that was woken brings its own.
Flow* NativeEngine::first_flow(Lane& lane, FlowsOfLane& here) noexcept {
    if (here.resting != nullptr) return &take_resting(here);
    try {
        return &make_flow(here);
    } catch (...) {
        Flow* const resumed = resumed_.pop(here.resumed);
        if (resumed != nullptr) go_on_with(lane, here, *resumed);
        return resumed;
    }
}

/// The next worker is started where there is more: for a worker the pool does it. Who announced may have
/// woken one for several.
void NativeEngine::found_work(FlowsOfLane& here) noexcept {
    if (std::exchange(here.found, true)) return;
    if (here.worker != nullptr)
        here.worker->found_work();
    else if (may_have_work())
        announce();
}

/// It may run for long: what ended before it is told first.
void NativeEngine::go_on_with(Lane& lane, FlowsOfLane& here, Flow& resumed) noexcept {
    host_.flush(lane);
    found_work(here);
    --here.budget;
    here.current = &resumed;  // it is in a task, and may pause again before it comes back here
}

/// Without a flow. So a thread that holds the one seat is of use even where there is no memory for a stack.
void NativeEngine::run_on_own_stack(Lane& lane, FlowsOfLane& here) noexcept {
    Task* const task = find(lane);
    if (task == nullptr) return;
    found_work(here);
    count_one(lane.ran);
    const FloatModes before = FloatModes::current();
    modes_.apply();
    if (Task* continuation = host_.run_here(lane, *task)) keep(lane, *continuation);
    before.apply();
}

bool NativeEngine::enter(Lane& lane, Worker* worker, int budget) noexcept {
    FlowsOfLane& here = flows(lane);
    if (here.has_more_to_insert && !has_spare(here)) return false;
    Fiber home;
    TaskFrame* const frame = exchange_frame(nullptr);
    Fiber* const outer_home = std::exchange(here.home, &home);
    here.worker = worker;
    here.budget = budget;
    here.found = false;
    if (Flow* const flow = first_flow(lane, here))
        Fiber::switch_to(home, flow->fiber);
    else
        run_on_own_stack(lane, here);
    here.home = outer_home;
    (void)exchange_frame(frame);
    // The flows that rest are not needed while this thread is elsewhere: what is beyond a few goes.
    while (here.resting_count > kMostResting) {
        Flow& spare = take_resting(here);
        Stack& stack = spare.stack;
        delete &spare;
        here.stacks.give_back(stack);
    }
    return here.found;
}

void NativeEngine::run_flow(void* flow) {
    Flow& self = *static_cast<Flow*>(flow);
    self.engine.loop(self);
}

void NativeEngine::loop(Flow& self) {
    while (true) {
        // After each switch and each task this may be another thread.
        Lane* lane = &host_.lane();
        FlowsOfLane* here = &flows(*lane);
        here->current = &self;
        Task* continuation = nullptr;
        Flow* resumed = nullptr;
        while (may_go_on(*here)) {
            resumed = resumed_.pop(here->resumed);
            if (resumed != nullptr) break;
            Task* const task = find_after(*lane, continuation);
            if (task == nullptr) {
                if (resumed_.empty()) break;
                continue;
            }
            found_work(*here);
            --here->budget;
            count_one(lane->ran);
            modes_.apply();  // the task before may have left others
            continuation = host_.run(lane, *task);
            here = &flows(*lane);
            here->current = &self;
        }
        if (continuation != nullptr) keep(*lane, *continuation);
        rest(*here, self);
        if (resumed != nullptr) {
            go_on_with(*lane, *here, *resumed);
            Fiber::switch_to(self.fiber, resumed->fiber);
        } else {
            Fiber::switch_to(self.fiber, *here->home);
        }
    }
}

void NativeEngine::suspend(Announcement publish) {
    Lane& lane = host_.lane();
    FlowsOfLane& here = flows(lane);
    Flow& self = *here.current;
    if (!here.reserved) reserve(here);
    // A task that was woken goes on at once, without a flow that looks for it.
    Flow* const resumed = may_go_on(here) ? resumed_.pop(here.resumed) : nullptr;
    Flow& other = resumed != nullptr ? *resumed : take_flow(here, publish.must);
    if (resumed != nullptr) {
        host_.flush(lane);
        --here.budget;
        here.current = resumed;
    }
    TaskFrame* const frame = exchange_frame(nullptr);
    struct Telling {
        Announcement publish;
        Flow& flow;
    } telling{publish, self};
    Fiber::switch_to(self.fiber, other.fiber,
                     {[](void* argument) noexcept {
                          const Telling told = *static_cast<Telling*>(argument);
                          if (!told.publish.call(told.publish.argument, told.flow)) told.flow.wake();
                      },
                      &telling});
    (void)exchange_frame(frame);
}

}  // namespace heddle
