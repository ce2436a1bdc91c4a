#include <fmt/format.h>

#include <new>

#include "heddle/error.hpp"
#include "heddle/task.hpp"
#include "tasks/data_state.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle::detail {
namespace {

size_t bytes_of(const DataView& shape) {
    size_t elements, bytes;
    if (__builtin_mul_overflow(shape.leading, shape.columns, &elements) ||
        __builtin_mul_overflow(elements, shape.element_bytes, &bytes))
        throw Error(ErrorCode::kLimit,
                    fmt::format("{} x {} elements of {} bytes are more than any memory has", shape.rows,
                                shape.columns, shape.element_bytes));
    return bytes;
}

}  // namespace

DataHandle::DataHandle(Runtime& runtime, const DataView& shape) {
    if (shape.rows == 0 || shape.columns == 0)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("data cannot have {} x {} elements: at least one is needed", shape.rows,
                                shape.columns));
    if (shape.leading < shape.rows)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("a leading dimension of {} is less than the {} rows of the matrix",
                                shape.leading, shape.rows));
    const size_t bytes = bytes_of(shape);
    try {
        auto state = std::make_unique<DataState>(runtime.state(), shape);
        if (shape.address == nullptr) {
            state->own = std::make_unique<std::byte[]>(bytes);
            state->address = state->own.get();
        }
        view_ = state.release();
    } catch (const std::bad_alloc&) {
        throw Error(ErrorCode::kLimit, fmt::format("there is no memory for data of {} bytes", bytes));
    }
}

DataHandle::~DataHandle() {
    try {
        if (view_ != nullptr) release();
    } catch (...) {
        // A task that uses it itself destroys it: its memory goes all the same. So it does where what was
        // to be in memory of the caller's is lost.
        if (view_ != nullptr) let_go();
    }
}

void DataHandle::let_go() noexcept {
    DataState& state = DataState::of(*std::exchange(view_, nullptr));
    state.runtime.kept.forget(state);
    state.released = true;
    state.own.reset();
    DataState::drop(&state);
}

DataView& DataHandle::checked() const {
    if (view_ == nullptr)
        throw Error(ErrorCode::kInvalidArgument, "these data were released or moved away: make new ones");
    return *view_;
}

void DataHandle::wait() const {
    wait_for_tasks();
    DataState& state = DataState::of(checked());
    state.runtime.kept.bring_home(state);
}

void DataHandle::wait_for_tasks() const {
    DataState& state = DataState::of(checked());
    for (const TaskFrame* frame = current_frame(); frame != nullptr; frame = frame->below)
        for (uint32_t i = 0; i < frame->task->accesses; ++i)
            if (frame->task->access(i)->data == &state) {
                state.runtime.graph.enter_all();  // where they are destroyed they go all the same
                throw Error(ErrorCode::kInvalidArgument,
                            "a task cannot wait for data that it uses itself: it would wait for its own end");
            }
    if (state.runtime.idle()) return;
    // A task that follows all of them, in a sequence of its own.
    const auto sequence = std::make_shared<SequenceState>(state.runtime, state.runtime.domain_here());
    state.runtime.enter(sequence);
    const DataView* data[] = {view_};
    const AccessMode modes[] = {AccessMode::kOut};
    Insertion follower(*sequence, {[](void*, BodyAction) {}, 0, 1, true});
    follower.look_on();
    follower.commit(data, modes, nullptr);
    try {
        state.runtime.wait(*sequence);
    } catch (...) {
        state.runtime.keep(sequence);  // where the wait was refused the follower is still to come
        throw;
    }
}

void DataHandle::release() {
    wait_for_tasks();
    DataState& state = DataState::of(*view_);
    state.runtime.forget(state);
    if (state.own == nullptr) state.runtime.kept.bring_home(state);
    let_go();
}

}  // namespace heddle::detail
