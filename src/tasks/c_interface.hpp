// What stands behind the handles of heddle/task.h, and how its calls end.
//
// No exception leaves a C call: guarded() turns it into a code and keeps its message for the calling thread.
#pragma once

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "heddle/task.h"
#include "heddle/task.hpp"
#include "tasks/c_handles.hpp"

namespace heddle::c {

struct RuntimeObject {
    explicit RuntimeObject(RuntimeOptions options) : runtime(std::move(options)) {}
    Runtime runtime;
    std::atomic<int> dependents{0};  ///< sequences, data, futures and recordings that are left
};

/// Counts as one of a runtime's while it lives.
class Dependent {
  public:
    explicit Dependent(RuntimeObject& runtime) : runtime_(runtime) { ++runtime_.dependents; }
    ~Dependent() { --runtime_.dependents; }
    Dependent(const Dependent&) = delete;
    Dependent& operator=(const Dependent&) = delete;
    [[nodiscard]] RuntimeObject& runtime() const { return runtime_; }

  private:
    RuntimeObject& runtime_;
};

struct SequenceObject {
    explicit SequenceObject(RuntimeObject& runtime) : dependent(runtime), sequence(runtime.runtime) {}
    Dependent dependent;  // before the sequence: counted until that is gone
    Sequence sequence;
};

struct DataObject {
    DataObject(RuntimeObject& runtime, const detail::DataView& shape, bool is_tile)
        : dependent(runtime), handle(runtime.runtime, shape), tile(is_tile) {}
    Dependent dependent;
    detail::DataHandle handle;
    bool tile;
};

/// What a task's function said by returning something else than 0.
class TaskFailure : public std::runtime_error {
  public:
    TaskFailure(int result, const std::string& message) : std::runtime_error(message), result_(result) {}
    [[nodiscard]] int result() const noexcept { return result_; }

  private:
    int result_;
};

/// Called where an exception is being handled: keeps what it says for the calling thread.
heddle_task_ret_t note_error() noexcept;

template <class Call>
heddle_task_ret_t guarded(Call&& call) noexcept {
    return ends_in(HEDDLE_TASK_SUCCESS, &note_error, call);
}

/// Of calls that give a handle: null where `make` throws.
template <class Handle, class Make>
Handle* made(Make&& make) noexcept {
    Handle* handle = nullptr;
    (void)guarded([&] { handle = handle_of<Handle>(make()); });
    return handle;
}

[[noreturn]] void refuse(const std::string& message);
[[noreturn]] void refuse_handle(const char* kind);

template <class Object>
Object& object_of(const void* handle, const char* kind) {
    Object* object = HandleTable<Object>::process().find(reinterpret_cast<uintptr_t>(handle));
    if (object == nullptr) refuse_handle(kind);
    return *object;
}

inline RuntimeObject& object(heddle_runtime_t* runtime) {
    return object_of<RuntimeObject>(runtime, "runtime");
}
inline SequenceObject& object(heddle_sequence_t* sequence) {
    return object_of<SequenceObject>(sequence, "sequence");
}
inline DataObject& object(heddle_data_t* data) {
    return object_of<DataObject>(data, "datum");
}

}  // namespace heddle::c
