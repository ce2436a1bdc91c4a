#include <new>

#include "heddle/error.hpp"
#include "tasks/data_state.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle {

using detail::RuntimeState;
using detail::SequenceState;

Sequence::Sequence(Runtime& runtime)
    : state_(std::make_shared<SequenceState>(runtime.state(), runtime.state().domain_here())) {
    runtime.state().enter(state_);
}

Sequence::~Sequence() {
    try {
        wait();
    } catch (...) {
        // Nobody waited for it: nobody wants to know.
    }
}

void Sequence::wait() {
    state_->runtime.wait(*state_);
}

namespace detail {

Insertion::Insertion(SequenceState& sequence, const TaskShape& shape) : sequence_(sequence) {
    RuntimeState& runtime = sequence.runtime;
    const size_t bytes = sizeof(Task) + Task::closure_at(shape.accesses) + shape.closure_bytes;
    Task& task = runtime.memory.allocate(runtime.lane().records, bytes);
    task.body = shape.body;
    task.accesses = shape.accesses;
    task.trivial = shape.trivial;
    task.sequence = &sequence;
    task.next = nullptr;
    task_ = &task;
    closure_ = task.closure();
}

void Insertion::commit(const DataView* const* data, const AccessMode* modes, const TaskOptions* options) {
    Task& task = *static_cast<Task*>(task_);
    RuntimeState& runtime = sequence_.runtime;
    for (uint32_t i = 0; i < task.accesses; ++i) {
        DataState& state = DataState::of(*data[i]);
        if (&state.runtime != &runtime) {
            if (!task.trivial) task.body(closure_, BodyAction::kDestroy);
            throw Error(ErrorCode::kInvalidArgument,
                        "a task was given data of another runtime: data belong to the runtime that they were "
                        "made with");
        }
        Access& access = *task.access(i);
        access.data = &state;
        access.mode = modes[i];
    }
    task.named = options != nullptr;
    task.priority = 0;
    if (options != nullptr) {
        task.options() = *options;
        task.priority = options->priority;
    }
    try {
        runtime.commit(runtime.lane(), task);
    } catch (...) {
        if (!task.trivial) task.body(closure_, BodyAction::kDestroy);
        throw;
    }
    task_ = nullptr;
}

void Insertion::abandon() {
    RuntimeState& runtime = sequence_.runtime;
    runtime.memory.free(runtime.lane().records, *static_cast<Task*>(task_));
}

}  // namespace detail
}  // namespace heddle
