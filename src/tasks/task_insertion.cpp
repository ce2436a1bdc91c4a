// The way of a task from its insertion to where it could run.
#include <algorithm>
#include <cstring>
#include <new>

#include "heddle/error.hpp"
#include "tasks/data_state.hpp"
#include "tasks/in_engine.hpp"
#include "tasks/recording.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle::detail {
namespace {

/// Of one sequence, before who inserts runs some: what of them a core keeps in its cache.
constexpr uint64_t kFarAhead = 2'048;
constexpr uint64_t kLookEvery = 256;

void mark_special(Task& task, uint32_t index, const Reduction* const* reductions) {
    Access& access = *task.access(index);
    if (access.mode == AccessMode::kRedux) {
        access.reduction = reductions[index];
        task.special |= kReduces;
    } else {
        task.special |= kCommutes;
    }
}

[[noreturn, gnu::noinline]] void refuse_foreign_data() {
    throw Error(ErrorCode::kInvalidArgument,
                "a task was given data of another runtime: data belong to the runtime that they were made "
                "with");
}

/// Rethrows the exception in hand; want of memory in words of its own.
[[noreturn]] void tell_of_memory() {
    try {
        throw;
    } catch (const std::bad_alloc&) {
        throw Error(ErrorCode::kLimit,
                    "there is no memory to order one more task: wait for some of those inserted");
    }
}

/// The next of the task's data.
DataState& use(const SequenceState& sequence, Access& access, const DataView& view, AccessMode mode,
               bool at_root) {
    DataState& state = DataState::of(view);
    if (&state.runtime != &sequence.runtime) [[unlikely]]
        refuse_foreign_data();
    std::atomic<bool>& named = at_root ? state.at_root : state.below;
    if (!named.load(std::memory_order_relaxed)) named.store(true, std::memory_order_relaxed);
    access.data = &state;
    access.mode = mode;
    return state;
}

void refuse_data_named_twice(Task& task) {
    for (uint32_t i = 0; i < task.accesses; ++i)
        for (uint32_t k = 0; k < i; ++k)
            if (task.access(i)->data == task.access(k)->data &&
                std::max(task.access(i)->mode, task.access(k)->mode) > AccessMode::kInOut)
                throw Error(
                    ErrorCode::kInvalidArgument,
                    "a task named the same data twice, once with commute() or redux(): name them once");
}

void begin(Task& task, SequenceState& sequence, const TaskShape& shape) noexcept {
    task.body = shape.body;
    task.accesses = shape.accesses;
    task.special =
        static_cast<uint16_t>((shape.trivial ? 0 : kDestroys) | (shape.told_of_cancel ? kToldOfCancel : 0));
    task.named = false;
    task.priority = 0;
    task.keeps_data = shape.keeps_data;
    task.sequence = &sequence;
    task.next = nullptr;
}

}  // namespace

Insertion::Insertion(SequenceState& sequence, const TaskShape& shape) : sequence_(sequence) {
    size_t bytes;
    if (__builtin_add_overflow(sizeof(Task) + Task::closure_at(shape.accesses), shape.closure_bytes, &bytes))
        bytes = SIZE_MAX;  // which is refused
    // By hand, so that what is usual makes no call.
    const bool has_lane = latest_lane.table == sequence.runtime.lanes.get();
    Task* const task = has_lane ? TaskMemory::at_hand(latest_lane.lane->records, bytes) : nullptr;
    if (task == nullptr) [[unlikely]] {
        allocate(shape, bytes);
    } else {
        begin(*task, sequence, shape);
        task_ = task;
        closure_ = task->closure();
    }
}

[[gnu::noinline]] void Insertion::allocate(const TaskShape& shape, size_t bytes) {
    RuntimeState& runtime = sequence_.runtime;
    Task& task = runtime.memory.allocate(lane_to_insert(runtime.lanes).records, bytes);
    begin(task, sequence_, shape);
    task_ = &task;
    closure_ = task.closure();
}

void insert_plain(SequenceState& sequence, Body body, const std::byte* closure, uint32_t bytes,
                  const PlainUse* uses, uint32_t count) {
    RuntimeState& runtime = sequence.runtime;
    Lane& lane = lane_to_insert(runtime.lanes);
    Task& task = runtime.memory.allocate(lane.records, sizeof(Task) + Task::closure_at(count) + bytes);
    begin(task, sequence, {.body = body, .closure_bytes = bytes, .accesses = count, .trivial = true});
    // By hand, so that what is usual makes no call.
    if (bytes == kSmallClosure) [[likely]]
        std::memcpy(task.closure(), closure, kSmallClosure);
    else
        std::memcpy(task.closure(), closure, bytes);
    try {
        task.era = runtime.failures.era();
        const bool at_root = sequence.domain->is_root();
        for (uint32_t i = 0; i < count; ++i)
            (void)use(sequence, *task.access(i), *uses[i].data, uses[i].mode, at_root);
        if (count > 0) [[likely]]
            runtime.commit_ordered(lane, task);
        else
            runtime.commit(lane, task);
    } catch (...) {
        runtime.memory.free(lane.records, task);
        tell_of_memory();
    }
}

void insert_plain(SequenceState& sequence, Body body, const PlainClosure<kSmallClosure>& closure) {
    RuntimeState& runtime = sequence.runtime;
    Lane& lane = lane_to_insert(runtime.lanes);
    Task& task = runtime.memory.allocate(lane.records, sizeof(Task) + Task::closure_at(0) + sizeof closure);
    begin(task, sequence, {.body = body, .closure_bytes = sizeof closure, .accesses = 0, .trivial = true});
    std::memcpy(task.closure(), &closure, sizeof closure);
    try {
        runtime.commit_alone(lane, task);
    } catch (...) {
        runtime.memory.free(lane.records, task);
        tell_of_memory();
    }
}

void Insertion::look_on() noexcept {
    static_cast<Task*>(task_)->special |= kLooksOn;
}

void Insertion::name(const DataView* const* data, const AccessMode* modes, const TaskOptions* options,
                     const Reduction* const* reductions) {
    Task& task = *static_cast<Task*>(task_);
    const bool at_root = sequence_.domain->is_root();
    for (uint32_t i = 0; i < task.accesses; ++i) {
        const DataState& state = use(sequence_, *task.access(i), *data[i], modes[i], at_root);
        if (modes[i] > AccessMode::kInOut) mark_special(task, i, reductions);
        if (state.future != nullptr && modes[i] == AccessMode::kIn &&
            state.future->domain != sequence_.domain.get() && !state.future->state.settled())
            task.special |= kAwaitsFutures;
    }
    if (options != nullptr) {
        task.named = true;
        task.priority = options->priority;
        task.notes() = {options->name, sequence_.runtime.placement_for(*options)};
        if (task.notes().placement != nullptr) task.special |= kPlaced;
    }
    if ((task.special & (kCommutes | kReduces)) != 0) refuse_data_named_twice(task);
}

void Insertion::commit(const DataView* const* data, const AccessMode* modes, const TaskOptions* options,
                       const Reduction* const* reductions) {
    Task& task = *static_cast<Task*>(task_);
    try {
        if (task.accesses > 0 || options != nullptr) {
            task.era = sequence_.runtime.failures.era();
            name(data, modes, options, reductions);
        }
        sequence_.runtime.commit(lane_to_insert(sequence_.runtime.lanes), task);
    } catch (...) {
        if ((task.special & kDestroys) != 0) task.body(closure_, BodyAction::kDestroy);
        tell_of_memory();
    }
    task_ = nullptr;
}

void Insertion::record(RecordingState& recording, const DataView* const* data, const AccessMode* modes,
                       const TaskOptions* options, const Reduction* const* reductions) {
    Task& task = *static_cast<Task*>(task_);
    try {
        name(data, modes, options, reductions);
        recording.add(task);
    } catch (...) {
        if ((task.special & kDestroys) != 0) task.body(closure_, BodyAction::kDestroy);
        tell_of_memory();
    }
    task_ = nullptr;
}

void Insertion::abandon() {
    RuntimeState& runtime = sequence_.runtime;
    runtime.memory.free(runtime.lane().records, *static_cast<Task*>(task_));
}

void RuntimeState::commit(Lane& lane, Task& task) {
    if (task.accesses == 0)
        commit_alone(lane, task);
    else
        commit_ordered(lane, task);
}

void RuntimeState::commit_ordered(Lane& lane, Task& task) {
    const InEngine inside(*this, lane);
    count_one(lane.inserted);
    SequenceState& sequence = *task.sequence;
    uint64_t number;
    if (looks_at_line_ && graph.stand(lane.in_graph, task, *sequence.domain, sequence.stood)) {
        engine->line_grew();
        number = sequence.stood.load(std::memory_order_relaxed);
    } else {
        number = sequence.count_in(lane);
        order(lane, task);
    }
    if (number % kLookEvery == 0) help_if_far_ahead(lane, sequence);
}

void RuntimeState::commit_alone(Lane& lane, Task& task) {
    const InEngine inside(*this, lane);
    count_one(lane.inserted);
    SequenceState& sequence = *task.sequence;
    const uint64_t number = sequence.count_in(lane);
    if (own_graph_) [[unlikely]] {
        order(lane, task);
    } else {
        graph.add_alone(task);
        make_ready(lane, task);
    }
    if (number % kLookEvery == 0) help_if_far_ahead(lane, sequence);
}

/// One that was counted in.
[[gnu::noinline]] void RuntimeState::order(Lane& lane, Task& task) {
    SequenceState& sequence = *task.sequence;
    try {
        if (own_graph_ && sequence.domain->is_root() && !graph.watched())
            insert_into_engine(lane, task);
        else if (enter_graph(lane, task))
            could_run(lane, task);
    } catch (...) {
        sequence.count_out(lane);
        may_be_done(&sequence);
        throw;
    }
}

bool RuntimeState::enter_graph(Lane& lane, Task& task) {
    if (task.accesses > 0) return graph.add(lane.records, lane.in_graph, task, *task.sequence->domain);
    graph.add_alone(task);
    return true;
}

/// Its graph takes commute() and redux() for inout(): one task after the other, which is an order, too.
void RuntimeState::insert_into_engine(Lane& lane, Task& task) {
    task.special &= static_cast<uint16_t>(~kCommutes);
    if ((task.special & kReduces) == 0) return engine->insert(lane, task);
    graph.reduce_alone(task);
    try {
        engine->insert(lane, task);
    } catch (...) {
        graph.end_reducing(task);
        throw;
    }
}

void RuntimeState::could_run(Lane& lane, Task& task) noexcept {
    Task* none = nullptr;
    if ((task.special & kAsksFirst) == 0 || graph.admit(lane.records, task, none)) make_ready(lane, task);
}

void RuntimeState::help_if_far_ahead(Lane& lane, SequenceState& sequence) {
    if (current_frame() != nullptr || PollingServices::in_service()) return;
    const auto ahead = [&] {
        return sequence.inserted() - sequence.finished.load(std::memory_order_relaxed);
    };
    uint64_t left = ahead();
    if (left < kFarAhead) return;
    // Where nothing is at hand it is not for lack of hands, and who inserts goes on; also where all that runs
    // is of others, while what is of this sequence may wait for what is still to be inserted.
    while (left > kFarAhead / 2) {
        if (!engine->help(lane, left - kFarAhead / 2)) break;
        flush(lane);
        if (ahead() >= left) break;
        left = ahead();
    }
    flush(lane);
}

void RuntimeState::make_ready(Lane& lane, Task& task) noexcept {
    try {
        engine->ready(lane, task);
    } catch (...) {
        // No memory to keep it: it runs here and now.
        for (Task* now = &task; now != nullptr;) now = run_here(lane, *now);
        flush(lane);
    }
}

}  // namespace heddle::detail
