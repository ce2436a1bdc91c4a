// The way of a task through its runtime from where it could run to its end.
#include <fmt/format.h>

#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "heddle/error.hpp"
#include "tasks/data_state.hpp"
#include "tasks/recording.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle::detail {

Task* RuntimeState::run_here(Lane& lane, Task& task) noexcept {
    Lane* same = &lane;
    return run(same, task, true);
}

Task* RuntimeState::run(Lane*& lane, Task& task, bool stays) noexcept {
    // Nobody shall wait for the end of this task who waits for those that ended before it.
    if (lane->finishing != nullptr && lane->finishing != task.sequence) flush(*lane);
    if (task.accesses != 0 && !task.in_order) Graph::fetch_followers(task);
    TaskFrame frame{&task, this, stays};
    frame.below = exchange_frame(&frame);
    if ((task.special & ~kRecorded) != 0 || failures.any() || kept.any() || log != nullptr) {
        run_special(frame);
    } else {
        try {
            task.body(task.closure(), BodyAction::kRun);
            if (failures.any()) [[unlikely]]
                Failures::healed(task);
        } catch (...) {
            failures.failed(task, std::current_exception());
        }
    }
    exchange_frame(frame.below);
    // It may have been paused, and then gone on in another thread, which has a lane already.
    lane = lane_if_any(*lanes);
    Task* continuation = nullptr;
    // Nobody has had to find who follows it.
    const bool has_no_edges =
        (task.special & (kRecorded | kCommutes)) == 0 &&
        (task.accesses == 0 || (task.in_order && graph.end_in_order(lane->in_graph, task, continuation)));
    if (!has_no_edges) return finish(*lane, task);
    SequenceState& sequence = *task.sequence;
    memory.free(lane->records, task);
    count(*lane, sequence);
    return continuation;
}

/// The end of a task that others may follow. Of those that can run now the one to go on with, or null; the
/// others are given to the engine.
[[gnu::noinline]] Task* RuntimeState::finish(Lane& lane, Task& task) noexcept {
    Task* turns = (task.special & kCommutes) == 0 ? nullptr : end_turns(task);
    SequenceState& sequence = *task.sequence;
    Task* next;
    if ((task.special & kRecorded) == 0) {
        next = Graph::finish(task, lane.in_graph);
        memory.free(lane.records, task);
    } else {
        next = RecordingState::finish(task);
    }
    count(lane, sequence);
    Task* continuation = nullptr;
    const auto ready = [&](Task& one) {
        if (continuation == nullptr && one.priority == 0 && (one.special & kPlaced) == 0)
            continuation = &one;
        else
            make_ready(lane, one);
    };
    while (next != nullptr) {
        Task& one = *std::exchange(next, next->next);
        if ((one.special & kAsksFirst) == 0 || graph.admit(lane.records, one, next)) ready(one);
    }
    while (turns != nullptr) ready(*std::exchange(turns, turns->next));
    return continuation;
}

/// A task that is more than a function, or while there is more to look at.
[[gnu::noinline]] void RuntimeState::run_special(TaskFrame& frame) noexcept {
    Task& task = *frame.task;
    if ((task.special & kReduces) != 0) Graph::begin_reducing(task);
    if (!failures.any() || !cancelled(task)) {
        try {
            if ((task.special & kAwaitsFutures) != 0) await_futures(task);
            if (kept.any()) kept.bring_home(task);
            if (log != nullptr && (task.special & kLooksOn) == 0)
                run_traced(frame);
            else if ((task.special & kPlaced) == 0)
                task.body(task.closure(), BodyAction::kRun);
            else
                run_in_place(frame);
            if (failures.any() && (task.special & kLooksOn) == 0) Failures::healed(task);
        } catch (...) {
            // Also where its function was not reached: who waits for its future has to know.
            if ((task.special & kToldOfCancel) != 0) task.body(task.closure(), BodyAction::kCancel);
            failures.failed(task, std::current_exception());
        }
    }
    if ((task.special & (kDestroys | kReduces | kCommutes)) == 0) return;
    frame.over = true;
    frame.place = nullptr;
    frame.traced = nullptr;
    // Its closure may have the last share of what it reduces into, or has its turn with.
    before_destruction(task);
    if ((task.special & kDestroys) != 0) task.body(task.closure(), BodyAction::kDestroy);
}

/// Nothing of the task has run: where it cannot be paused, yet, others are.
void RuntimeState::await_futures(Task& task) {
    for (uint32_t i = 0; i < task.accesses; ++i) {
        const Access& access = *task.access(i);
        if (access.mode != AccessMode::kIn || access.data->future == nullptr) continue;
        const FutureState& future = access.data->future->state;
        while (!future.settled()) {
            try {
                future.wait_in_follower();
            } catch (const Error& error) {
                if (error.code() != ErrorCode::kLimit) throw;
                let_others_run();
            } catch (const std::bad_alloc&) {
                let_others_run();
            }
        }
        future.check();
    }
}

void RuntimeState::run_in_place(TaskFrame& frame) {
    Task& task = *frame.task;
    const Placement& placement = *task.notes().placement;
    std::optional<TaskPlace> place;
    if (!machine.synthetic() && (placement.must || !engine->goes_near())) {
        place.emplace(placement);
        frame.place = &*place;
    }
    task.body(task.closure(), BodyAction::kRun);
}

void RuntimeState::run_traced(TaskFrame& frame) {
    Task& task = *frame.task;
    TracedTask traced(*log, factory->name, task.named ? task.notes().name : nullptr);
    frame.traced = &traced;
    if ((task.special & kPlaced) != 0) return run_in_place(frame);
    task.body(task.closure(), BodyAction::kRun);
}

/// It reads what was not written.
bool RuntimeState::cancelled(Task& task) noexcept {
    std::exception_ptr why;
    if (!failures.cancels(task, why)) return false;
    if ((task.special & kToldOfCancel) == 0) return true;
    try {
        std::rethrow_exception(why);
    } catch (...) {
        task.body(task.closure(), BodyAction::kCancel);
    }
    return true;
}

void RuntimeState::before_destruction(Task& task) noexcept {
    for (uint32_t i = 0; (task.special & kCommutes) != 0 && i < task.accesses; ++i)
        if (task.access(i)->mode == AccessMode::kCommute)
            task.access(i)->data->owners.fetch_add(1, std::memory_order_relaxed);
    if ((task.special & kReduces) == 0) return;
    try {
        graph.end_reducing(task);
    } catch (...) {
        failures.failed(task, std::current_exception());
    }
}

Task* RuntimeState::end_turns(Task& task) noexcept {
    Task* const ready = graph.end_turns(task);
    for (uint32_t i = 0; i < task.accesses; ++i)
        if (task.access(i)->mode == AccessMode::kCommute) DataState::drop(task.access(i)->data);
    return ready;
}

void refuse_scratch(size_t size, size_t element_bytes) {
    throw Error(ErrorCode::kLimit, fmt::format("there is no memory for scratch of {} elements of {} bytes",
                                               size, element_bytes));
}

}  // namespace heddle::detail
