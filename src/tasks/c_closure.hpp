// What the record of a task that came from C holds, and the future that it may have.
//
// The Closure lies in the record, its arguments behind it, then the values. Who inserts builds it; then it is
// of the thread that runs the task, or cancels it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "heddle/future.hpp"
#include "heddle/task.h"
#include "heddle/task_insertion.hpp"

namespace heddle::c {

/// The value of a future of C. Its shares are the handle's, that of the task which gives the value, and one
/// for each argument of a task that reads or follows it.
struct FutureValue : detail::FutureState {
    /// Throws kLimit or std::bad_alloc where memory is short.
    FutureValue(detail::SequenceState& sequence, size_t its_bytes)
        : FutureState(sequence),
          bytes(its_bytes),
          value(its_bytes == 0 ? nullptr : std::make_unique_for_overwrite<std::byte[]>(its_bytes)) {}

    void share() noexcept { owners.fetch_add(1, std::memory_order_relaxed); }
    /// One share less; the last one frees it.
    static void drop(FutureValue* future) noexcept {
        if (future->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete future;
    }

    const size_t bytes;
    const std::unique_ptr<std::byte[]> value;  ///< written by the task alone, before the future is settled
    std::atomic<uint32_t> owners{1};
};

struct Argument {
    heddle_mode_t mode;
    const detail::DataView* data;
    size_t bytes;
    size_t offset;  ///< of a value in the closure, of scratch in the memory of the task
    const heddle_reduction_t* reduction;
    FutureValue* future;  ///< a share, or null
};

struct Closure {
    heddle_function_t function;
    const char* name;
    size_t count;
    size_t scratch_bytes;
    size_t copied_bytes;  ///< of it, for each run of a recorded task; 0: it may run as it is
    FutureValue* result;  ///< a share, or null

    [[nodiscard]] Argument* arguments() { return reinterpret_cast<Argument*>(this + 1); }
    static void body(void* self, detail::BodyAction action);
};
static_assert(sizeof(Closure) % alignof(Argument) == 0);

[[nodiscard]] inline bool is_data(heddle_mode_t mode) {
    return mode <= HEDDLE_INOUT || mode == HEDDLE_COMMUTE || mode == HEDDLE_REDUX;
}
[[nodiscard]] inline bool is_future(heddle_mode_t mode) {
    return mode == HEDDLE_FUTURE || mode == HEDDLE_AFTER;
}

/// Where a task goes that is built from what C gives.
struct Destination {
    detail::SequenceState& sequence;
    detail::RecordingState* recording = nullptr;  ///< the sequence is its own then
    FutureValue* result = nullptr;
};

/// Throws kInvalidArgument for what can never be right, kLimit where memory is short; nothing is inserted
/// then.
void insert(const Destination& to, heddle_function_t function, const heddle_argument_t* arguments,
            size_t count, const heddle_task_options_t* options);

/// Throws kInvalidArgument.
[[nodiscard]] FutureValue& future_of(const heddle_future_t* future);

}  // namespace heddle::c

/// On the stack of who runs the task.
struct heddle_task {
    heddle::c::Closure& closure;
    std::byte* scratch;
    bool given = false;   ///< what its future is to get
    bool failed = false;  ///< something was asked wrongly, or heddle_task_fail() was called
    std::string why;
};
