// The C interface: futures.
#include <cstring>

#include "tasks/c_closure.hpp"
#include "tasks/c_interface.hpp"

namespace heddle::c {
namespace {

struct FutureObject {
    FutureObject(SequenceObject& sequence, size_t bytes)
        : dependent(sequence.dependent.runtime()), value(new FutureValue(sequence.sequence.state(), bytes)) {}
    ~FutureObject() { FutureValue::drop(value); }
    FutureObject(const FutureObject&) = delete;
    FutureObject& operator=(const FutureObject&) = delete;

    Dependent dependent;
    FutureValue* const value;
};

}  // namespace

FutureValue& future_of(const heddle_future_t* future) {
    return *object_of<FutureObject>(future, "future").value;
}

}  // namespace heddle::c

using namespace heddle;
using namespace heddle::c;

heddle_future_t* heddle_async(heddle_sequence_t* sequence, heddle_function_t function,
                              const heddle_argument_t* arguments, size_t count, size_t result_bytes,
                              const heddle_task_options_t* options) {
    auto* const future = made<heddle_future_t>(
        [&] { return std::make_unique<FutureObject>(c::object(sequence), result_bytes); });
    if (future == nullptr) return nullptr;
    const heddle_task_ret_t result = guarded([&] {
        c::insert({c::object(sequence).sequence.state(), nullptr, &future_of(future)}, function, arguments,
                  count, options);
    });
    if (result == HEDDLE_TASK_SUCCESS) return future;
    taken<FutureObject>(future).reset();
    return nullptr;
}

heddle_task_ret_t heddle_future_ready(const heddle_future_t* future, bool* ready) {
    return guarded([&] {
        if (ready == nullptr) refuse("there is no place for whether the future is ready");
        *ready = future_of(future).settled();
    });
}

heddle_task_ret_t heddle_future_wait(const heddle_future_t* future) {
    return guarded([&] { future_of(future).wait(); });
}

heddle_task_ret_t heddle_future_get(const heddle_future_t* future, void* to, size_t bytes) {
    return guarded([&] {
        const FutureValue& value = future_of(future);
        if (bytes != value.bytes)
            refuse("the result of the future has " + std::to_string(value.bytes) +
                   " bytes, and what it was to be copied to has " + std::to_string(bytes));
        if (to == nullptr && bytes > 0) refuse("there is no place for the result of the future");
        value.wait();
        value.check();
        if (bytes > 0) std::memcpy(to, value.value.get(), bytes);
    });
}

heddle_task_ret_t heddle_future_destroy(heddle_future_t* future) {
    return guarded([&] {
        if (taken<FutureObject>(future) == nullptr) refuse_handle("future");
    });
}
