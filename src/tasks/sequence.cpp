#include <algorithm>
#include <new>

#include "heddle/error.hpp"
#include "tasks/data_state.hpp"
#include "tasks/recording.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle {

using detail::RuntimeState;
using detail::SequenceState;

Sequence::Sequence(Runtime& runtime)
    : state_(std::make_shared<SequenceState>(runtime.state(), runtime.state().domain_here())) {
    runtime.state().enter(state_);
}

Sequence::~Sequence() {
    state_->runtime.end(state_);
}

void Sequence::wait() {
    RuntimeState& runtime = state_->runtime;
    try {
        runtime.wait(*state_);
    } catch (...) {
        runtime.kept.try_to_bring_all_home();
        throw;
    }
    runtime.kept.bring_all_home();
}

namespace detail {
namespace {

void mark_special(Task& task, uint32_t index, const Reduction* const* reductions) {
    Access& access = *task.access(index);
    if (access.mode == AccessMode::kRedux) {
        access.reduction = reductions[index];
        task.special |= kReduces;
    } else {
        task.special |= kCommutes;
    }
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

void refuse_data_named_twice(Task& task) {
    for (uint32_t i = 0; i < task.accesses; ++i)
        for (uint32_t k = 0; k < i; ++k)
            if (task.access(i)->data == task.access(k)->data &&
                std::max(task.access(i)->mode, task.access(k)->mode) > AccessMode::kInOut)
                throw Error(
                    ErrorCode::kInvalidArgument,
                    "a task named the same data twice, once with commute() or redux(): name them once");
}

}  // namespace

Insertion::Insertion(SequenceState& sequence, const TaskShape& shape) : sequence_(sequence) {
    RuntimeState& runtime = sequence.runtime;
    size_t bytes;
    if (__builtin_add_overflow(sizeof(Task) + Task::closure_at(shape.accesses), shape.closure_bytes, &bytes))
        bytes = SIZE_MAX;  // which is refused
    Task& task = runtime.memory.allocate(lane_to_insert(runtime.lanes).records, bytes);
    task.body = shape.body;
    task.accesses = shape.accesses;
    task.trivial = shape.trivial;
    task.special = static_cast<uint8_t>(shape.told_of_cancel ? kToldOfCancel : Special{});
    task.keeps_data = shape.keeps_data;
    task.awaits_futures = false;
    task.sequence = &sequence;
    task.next = nullptr;
    task_ = &task;
    closure_ = task.closure();
}

void Insertion::look_on() noexcept {
    static_cast<Task*>(task_)->special |= kLooksOn;
}

void Insertion::name(const DataView* const* data, const AccessMode* modes, const TaskOptions* options,
                     const Reduction* const* reductions) {
    Task& task = *static_cast<Task*>(task_);
    const bool at_root = sequence_.domain->is_root();
    for (uint32_t i = 0; i < task.accesses; ++i) {
        DataState& state = DataState::of(*data[i]);
        if (&state.runtime != &sequence_.runtime)
            throw Error(ErrorCode::kInvalidArgument,
                        "a task was given data of another runtime: data belong to the runtime that they were "
                        "made with");
        std::atomic<bool>& named = at_root ? state.at_root : state.below;
        if (!named.load(std::memory_order_relaxed)) named.store(true, std::memory_order_relaxed);
        Access& access = *task.access(i);
        access.data = &state;
        access.mode = modes[i];
        if (modes[i] > AccessMode::kInOut) mark_special(task, i, reductions);
        if (state.future != nullptr && modes[i] == AccessMode::kIn &&
            state.future->domain != sequence_.domain.get() && !state.future->state.settled())
            task.awaits_futures = true;
    }
    task.named = options != nullptr;
    task.priority = 0;
    if (options != nullptr) {
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
        } else {
            task.named = false;
            task.priority = 0;
        }
        sequence_.runtime.commit(sequence_.runtime.lane(), task);
    } catch (...) {
        if (!task.trivial) task.body(closure_, BodyAction::kDestroy);
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
        if (!task.trivial) task.body(closure_, BodyAction::kDestroy);
        tell_of_memory();
    }
    task_ = nullptr;
}

void Insertion::abandon() {
    RuntimeState& runtime = sequence_.runtime;
    runtime.memory.free(runtime.lane().records, *static_cast<Task*>(task_));
}

}  // namespace detail
}  // namespace heddle
