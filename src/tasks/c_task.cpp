// The C interface: sequences, insertion, and a task's arguments.
#include <array>
#include <cstddef>
#include <cstring>

#include "tasks/c_interface.hpp"

namespace heddle::c {
namespace {

using detail::BodyAction;
using detail::DataView;

struct Argument {
    heddle_mode_t mode;
    const DataView* data;
    size_t bytes;
    size_t offset;  ///< of a value in the closure, of scratch in the memory of the task
    const heddle_reduction_t* reduction;
};

/// What lies in a task's record; its arguments follow it, then the values.
struct Closure {
    heddle_function_t function;
    const char* name;
    size_t count;
    size_t scratch_bytes;

    [[nodiscard]] Argument* arguments() { return reinterpret_cast<Argument*>(this + 1); }
};

constexpr size_t kAlignment = 16;
static_assert(sizeof(Closure) % alignof(Argument) == 0);

/// The next offset that values of any type may have. Throws kLimit beyond any memory.
size_t add_aligned(size_t offset, size_t bytes) {
    size_t end;
    if (__builtin_add_overflow(offset, bytes, &end) || end > SIZE_MAX - kAlignment)
        throw Error(ErrorCode::kLimit,
                    "the values and the scratch memory of a task are more than any memory has");
    return (end + kAlignment - 1) / kAlignment * kAlignment;
}

bool is_data(heddle_mode_t mode) {
    return mode != HEDDLE_VALUE && mode != HEDDLE_SCRATCH;
}

AccessMode access_of(heddle_mode_t mode) {
    switch (mode) {
        case HEDDLE_IN:
            return AccessMode::kIn;
        case HEDDLE_OUT:
            return AccessMode::kOut;
        case HEDDLE_COMMUTE:
            return AccessMode::kCommute;
        case HEDDLE_REDUX:
            return AccessMode::kRedux;
        default:
            return AccessMode::kInOut;
    }
}

// A reduction in C is one in C++: a view has the same fields on both sides, and a reference is a pointer.
static_assert(offsetof(DataView, address) == offsetof(heddle_view_t, elements) &&
              offsetof(DataView, rows) == offsetof(heddle_view_t, rows) &&
              offsetof(DataView, columns) == offsetof(heddle_view_t, columns) &&
              offsetof(DataView, leading) == offsetof(heddle_view_t, leading) &&
              offsetof(DataView, element_bytes) == offsetof(heddle_view_t, element_bytes));
static_assert(offsetof(detail::Reduction, fill) == offsetof(heddle_reduction_t, fill) &&
              offsetof(detail::Reduction, combine) == offsetof(heddle_reduction_t, combine));

const detail::Reduction* reduction_of(const heddle_argument_t& argument) {
    return argument.mode == HEDDLE_REDUX ? static_cast<const detail::Reduction*>(argument.pointer) : nullptr;
}

}  // namespace
}  // namespace heddle::c

/// On the stack of who runs the task.
struct heddle_task {
    heddle::c::Closure& closure;
    std::byte* scratch;
    bool failed = false;  ///< something was asked wrongly, or heddle_task_fail() was called
    std::string why;
};

namespace heddle::c {
namespace {

void run(Closure& closure) {
    std::unique_ptr<std::byte[]> scratch;
    if (closure.scratch_bytes > 0)
        scratch = std::make_unique_for_overwrite<std::byte[]>(closure.scratch_bytes);
    for (size_t i = 0; i < closure.count; ++i)
        if (Argument& argument = closure.arguments()[i]; argument.reduction != nullptr)
            argument.data = &detail::private_copy(
                *argument.data, *reinterpret_cast<const detail::Reduction*>(argument.reduction),
                argument.reduction->neutral);
    heddle_task task{closure, scratch.get(), false, {}};
    const int result = closure.function(&task);
    if (result == 0 && !task.failed) return;
    const std::string name = closure.name == nullptr ? "a task" : std::string("task ") + closure.name;
    throw TaskFailure(
        result, name + " failed with " + std::to_string(result) + (task.why.empty() ? "" : ": " + task.why));
}

void body(void* self, BodyAction action) {
    if (action == BodyAction::kRun) run(*static_cast<Closure*>(self));
}

/// The data of a call and how it uses them; most calls need no memory for it.
class Accesses {
  public:
    explicit Accesses(size_t most) {
        if (most <= few_data_.size()) return;
        many_data_.resize(most);
        many_modes_.resize(most);
        many_reductions_.resize(most);
        data_ = many_data_.data();
        modes_ = many_modes_.data();
        reductions_ = many_reductions_.data();
    }
    void add(const DataView* data, AccessMode mode, const detail::Reduction* reduction) {
        data_[count_] = data;
        reductions_[count_] = reduction;
        modes_[count_++] = mode;
    }
    [[nodiscard]] const detail::Reduction* const* reductions() const { return reductions_; }
    [[nodiscard]] const DataView* const* data() const { return data_; }
    [[nodiscard]] const AccessMode* modes() const { return modes_; }
    [[nodiscard]] uint32_t count() const { return count_; }

  private:
    std::array<const DataView*, 16> few_data_;
    std::array<AccessMode, 16> few_modes_;
    std::array<const detail::Reduction*, 16> few_reductions_;
    std::vector<const DataView*> many_data_;
    std::vector<AccessMode> many_modes_;
    std::vector<const detail::Reduction*> many_reductions_;
    const DataView** data_ = few_data_.data();
    AccessMode* modes_ = few_modes_.data();
    const detail::Reduction** reductions_ = few_reductions_.data();
    uint32_t count_ = 0;
};

void check(const heddle_argument_t& argument, size_t index) {
    const auto complain = [&](const char* what) {
        refuse("argument " + std::to_string(index) + " of the task " + what);
    };
    switch (argument.mode) {
        case HEDDLE_IN:
        case HEDDLE_OUT:
        case HEDDLE_INOUT:
        case HEDDLE_SCRATCH:
        case HEDDLE_COMMUTE:
            return;
        case HEDDLE_REDUX: {
            const auto* reduction = static_cast<const heddle_reduction_t*>(argument.pointer);
            if (reduction == nullptr || reduction->fill == nullptr || reduction->combine == nullptr)
                complain("is to be reduced and says not how");
            return;
        }
        case HEDDLE_VALUE:
            if (argument.pointer == nullptr || argument.bytes == 0)
                complain("is a value and has no pointer, or no bytes");
            return;
    }
    complain("has a mode that does not exist");
}

void insert(SequenceObject& sequence, heddle_function_t function, const heddle_argument_t* arguments,
            size_t count, const heddle_task_options_t* options) {
    if (function == nullptr) refuse("a task has no function");
    if (arguments == nullptr && count > 0) refuse("a task has arguments, and no array of them");
    if (count > UINT32_MAX / 2) throw Error(ErrorCode::kLimit, "a task cannot have so many arguments");
    Accesses accesses(count);
    size_t values = add_aligned(sizeof(Closure), count * sizeof(Argument));
    const size_t first_value = values;
    for (size_t i = 0; i < count; ++i) {
        check(arguments[i], i);
        if (is_data(arguments[i].mode))
            accesses.add(&object(arguments[i].data).handle.checked(), access_of(arguments[i].mode),
                         reduction_of(arguments[i]));
        else if (arguments[i].mode == HEDDLE_VALUE)
            values = add_aligned(values, arguments[i].bytes);
    }
    detail::Insertion insertion(sequence.sequence.state(), {&body, values, accesses.count(), true});
    auto& closure =
        *new (insertion.closure()) Closure{function, options == nullptr ? nullptr : options->name, count, 0};
    size_t value = first_value;
    uint32_t datum = 0;
    for (size_t i = 0; i < count; ++i) {
        const heddle_argument_t& given = arguments[i];
        auto& argument =
            *new (closure.arguments() + i) Argument{given.mode, nullptr, given.bytes, 0, nullptr};
        if (is_data(given.mode)) {
            argument.data = accesses.data()[datum++];
            if (given.mode == HEDDLE_REDUX)
                argument.reduction = static_cast<const heddle_reduction_t*>(given.pointer);
        } else if (given.mode == HEDDLE_VALUE) {
            argument.offset = value;
            std::memcpy(reinterpret_cast<std::byte*>(&closure) + value, given.pointer, given.bytes);
            value = add_aligned(value, given.bytes);
        } else {
            argument.offset = closure.scratch_bytes;
            closure.scratch_bytes = add_aligned(closure.scratch_bytes, given.bytes);
        }
    }
    TaskOptions said;
    if (options != nullptr) {
        said.priority = options->priority;
        said.name = options->name;
        if (options->cpus != nullptr) said.cpus = CpuSet::from_native(options->cpus, sizeof(cpu_set_t));
    }
    insertion.commit(accesses.data(), accesses.modes(), options == nullptr ? nullptr : &said,
                     accesses.reductions());
}

Argument& argument_of(heddle_task_t* task, size_t index) {
    if (index >= task->closure.count)
        refuse("the task has " + std::to_string(task->closure.count) + " arguments, and none with index " +
               std::to_string(index));
    return task->closure.arguments()[index];
}

void* address_of(heddle_task_t* task, const Argument& argument) {
    if (is_data(argument.mode)) return argument.data->address;
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
}  // namespace heddle::c

using namespace heddle;
using namespace heddle::c;

heddle_sequence_t* heddle_sequence_create(heddle_runtime_t* runtime) {
    return made<heddle_sequence_t>([&] { return std::make_unique<SequenceObject>(c::object(runtime)); });
}

heddle_task_ret_t heddle_insert(heddle_sequence_t* sequence, heddle_function_t function,
                                const heddle_argument_t* arguments, size_t count,
                                const heddle_task_options_t* options) {
    return guarded([&] { c::insert(c::object(sequence), function, arguments, count, options); });
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
        const bool value = argument.mode == HEDDLE_VALUE;
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

int heddle_task_fail(heddle_task_t* task, int result, const char* message) {
    if (task == nullptr || task->failed) return result;
    task->failed = true;
    (void)guarded([&] { task->why = message == nullptr ? "" : message; });
    return result;
}
