// The C interface: sequences, and a task's function with its arguments.
#include <cstring>

#include "tasks/c_closure.hpp"
#include "tasks/c_interface.hpp"

namespace heddle::c {
namespace {

using detail::BodyAction;

/// Records of recorded tasks are copied here before they run, where they are not larger.
constexpr size_t kSmallCopy = 512;

void run_here(Closure& closure) {
    std::unique_ptr<std::byte[]> scratch;
    if (closure.scratch_bytes > 0) scratch = detail::scratch_memory<std::byte>(closure.scratch_bytes);
    for (size_t i = 0; i < closure.count; ++i)
        if (Argument& argument = closure.arguments()[i]; argument.reduction != nullptr)
            argument.data = &detail::private_copy(
                *argument.data, *reinterpret_cast<const detail::Reduction*>(argument.reduction),
                argument.reduction->neutral);
    heddle_task task{closure, scratch.get(), false, false, {}};
    const int result = closure.function(&task);
    if (result == 0 && !task.failed && closure.result != nullptr && closure.result->bytes > 0 && !task.given)
        (void)heddle_task_fail(&task, 0, "it has a future, and has given nothing for it by heddle_give()");
    if (result == 0 && !task.failed) return;
    const std::string name = closure.name == nullptr ? "a task" : std::string("task ") + closure.name;
    throw TaskFailure(
        result, name + " failed with " + std::to_string(result) + (task.why.empty() ? "" : ": " + task.why));
}

/// Private copies and values are of one run: the next one begins with what was recorded.
void run(Closure& closure) {
    if (closure.copied_bytes == 0) return run_here(closure);
    alignas(16) std::byte small[kSmallCopy];
    std::unique_ptr<std::byte[]> large;
    std::byte* copy = small;
    if (closure.copied_bytes > sizeof small) {
        large = std::make_unique_for_overwrite<std::byte[]>(closure.copied_bytes);
        copy = large.get();
    }
    std::memcpy(copy, &closure, closure.copied_bytes);
    run_here(*reinterpret_cast<Closure*>(copy));
}

void run_and_settle(Closure& closure) {
    try {
        run(closure);
    } catch (...) {
        closure.result->settle(std::current_exception());
        throw;
    }
    closure.result->settle(nullptr);
}

void drop_shares(Closure& closure) noexcept {
    for (size_t i = 0; i < closure.count; ++i)
        if (FutureValue* future = closure.arguments()[i].future; future != nullptr) FutureValue::drop(future);
    if (closure.result != nullptr) FutureValue::drop(closure.result);
}

Argument& argument_of(heddle_task_t* task, size_t index) {
    if (index >= task->closure.count)
        refuse("the task has " + std::to_string(task->closure.count) + " arguments, and none with index " +
               std::to_string(index));
    Argument& argument = task->closure.arguments()[index];
    if (argument.mode == HEDDLE_AFTER)
        refuse("argument " + std::to_string(index) +
               " is a future that the task follows, and has no value: "
               "name it by heddle_result_of()");
    // What its task has thrown, where this one was inserted after that was told by a wait.
    if (argument.future != nullptr) argument.future->check();
    return argument;
}

void* address_of(heddle_task_t* task, const Argument& argument) {
    if (is_data(argument.mode)) return argument.data->address;
    if (argument.mode == HEDDLE_FUTURE) return argument.future->value.get();
    if (argument.mode == HEDDLE_SCRATCH) return task->scratch + argument.offset;
    return reinterpret_cast<std::byte*>(&task->closure) + argument.offset;
}

/// What is asked wrongly fails the task, even where its function does not look at the answer.
template <class Call>
heddle_task_ret_t asked(heddle_task_t* task, Call&& call) {
    const heddle_task_ret_t result = guarded([&] {
        if (task == nullptr) refuse("there is no task: its arguments are for its function");
        call();
    });
    if (result != HEDDLE_TASK_SUCCESS && task != nullptr)
        (void)heddle_task_fail(task, 0, heddle_task_error_message());
    return result;
}

}  // namespace

void Closure::body(void* self, BodyAction action) {
    auto& closure = *static_cast<Closure*>(self);
    if (action == BodyAction::kDestroy) return drop_shares(closure);
    if (action == BodyAction::kCancel) return closure.result->settle(std::current_exception());
    if (closure.result == nullptr) return run(closure);
    run_and_settle(closure);
}

}  // namespace heddle::c

using namespace heddle;
using namespace heddle::c;

heddle_sequence_t* heddle_sequence_create(heddle_runtime_t* runtime) {
    return made<heddle_sequence_t>([&] { return std::make_unique<SequenceObject>(c::object(runtime)); });
}

heddle_task_ret_t heddle_insert(heddle_sequence_t* sequence, heddle_function_t function,
                                const heddle_argument_t* arguments, size_t count,
                                const heddle_task_options_t* options) {
    return guarded(
        [&] { c::insert({c::object(sequence).sequence.state()}, function, arguments, count, options); });
}

heddle_task_ret_t heddle_sequence_wait(heddle_sequence_t* sequence) {
    return guarded([&] { c::object(sequence).sequence.wait(); });
}

heddle_task_ret_t heddle_sequence_destroy(heddle_sequence_t* sequence) {
    const heddle_task_ret_t result = heddle_sequence_wait(sequence);
    // A failure is told once: what is invalid again was not a task's, but this call.
    if (result != HEDDLE_TASK_INVALID || heddle_sequence_wait(sequence) != HEDDLE_TASK_INVALID)
        taken<SequenceObject>(sequence).reset();
    return result;
}

size_t heddle_argument_count(const heddle_task_t* task) {
    return task == nullptr ? 0 : task->closure.count;
}

heddle_task_ret_t heddle_unpack(heddle_task_t* task, size_t index, void* to, size_t bytes) {
    return asked(task, [&] {
        const Argument& argument = argument_of(task, index);
        if (to == nullptr) refuse("there is no place for argument " + std::to_string(index));
        const bool value = argument.mode == HEDDLE_VALUE || argument.mode == HEDDLE_FUTURE;
        const size_t expected = value ? argument.bytes : sizeof(void*);
        if (bytes != expected)
            refuse("argument " + std::to_string(index) + " is " +
                   (value ? "a value of " : "an address, of ") + std::to_string(expected) +
                   " bytes, and what it was to be unpacked to has " + std::to_string(bytes));
        void* const address = address_of(task, argument);
        std::memcpy(to, value ? address : static_cast<const void*>(&address), bytes);
    });
}

heddle_task_ret_t heddle_unpack_view(heddle_task_t* task, size_t index, heddle_view_t* view) {
    return asked(task, [&] {
        const Argument& argument = argument_of(task, index);
        if (view == nullptr) refuse("there is no place for the view");
        if (is_data(argument.mode))
            *view = {argument.data->address, argument.data->rows, argument.data->columns,
                     argument.data->leading, argument.data->element_bytes};
        else
            *view = {address_of(task, argument), argument.bytes, 1, argument.bytes, 1};
    });
}

heddle_task_ret_t heddle_give(heddle_task_t* task, const void* result, size_t bytes) {
    return asked(task, [&] {
        FutureValue* const future = task->closure.result;
        if (future == nullptr)
            refuse("the task has no future that it could give something: insert it by heddle_async()");
        if (bytes != future->bytes)
            refuse("the task is to give " + std::to_string(future->bytes) + " bytes, and gives " +
                   std::to_string(bytes));
        if (result == nullptr && bytes > 0) refuse("the task gives what is nowhere: the result is NULL");
        if (bytes > 0) std::memcpy(future->value.get(), result, bytes);
        task->given = true;
    });
}

int heddle_task_fail(heddle_task_t* task, int result, const char* message) {
    if (task == nullptr || task->failed) return result;
    task->failed = true;
    (void)guarded([&] { task->why = message == nullptr ? "" : message; });
    return result;
}
