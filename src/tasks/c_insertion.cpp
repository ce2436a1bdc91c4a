// The C interface: tasks on their way in.
#include <array>
#include <cstring>
#include <vector>

#include "tasks/c_closure.hpp"
#include "tasks/c_interface.hpp"

namespace heddle::c {
namespace {

using detail::DataView;

constexpr size_t kAlignment = 16;

/// The next offset that values of any type may have. Throws kLimit beyond any memory.
size_t add_aligned(size_t offset, size_t bytes) {
    size_t end;
    if (__builtin_add_overflow(offset, bytes, &end) || end > SIZE_MAX - kAlignment)
        throw Error(ErrorCode::kLimit,
                    "the values and the scratch memory of a task are more than any memory has");
    return (end + kAlignment - 1) / kAlignment * kAlignment;
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

FutureValue& future_of(const heddle_argument_t& argument) {
    return c::future_of(static_cast<const heddle_future_t*>(argument.pointer));
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

void check(const heddle_argument_t& argument, size_t index, bool recorded) {
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
        case HEDDLE_FUTURE:
        case HEDDLE_AFTER:
            if (recorded)
                complain(
                    "is a future, which a recorded task cannot have: a future has one value, and is "
                    "settled but once");
            if (argument.mode == HEDDLE_FUTURE && future_of(argument).bytes == 0)
                complain("is a future that gives no bytes: follow its task by heddle_after()");
            return;
    }
    complain("has a mode that does not exist");
}

Near near_of(const heddle_near_t& near_to) {
    switch (near_to.kind) {
        case HEDDLE_NEAR_NOTHING:
            return {};
        case HEDDLE_NEAR_CPU:
            return Near::cpu(near_to.number);
        case HEDDLE_NEAR_NUMA_NODE:
            return Near::numa_node(near_to.number);
        case HEDDLE_NEAR_DATA:
            return Near::memory(object(near_to.data).handle.checked().address);
    }
    refuse("a task shall run near to something of a kind that does not exist");
}

TaskOptions options_of(const heddle_task_options_t& given) {
    TaskOptions options;
    options.priority = given.priority;
    options.name = given.name;
    if (given.cpus != nullptr) options.cpus = CpuSet::from_native(given.cpus, sizeof(cpu_set_t));
    options.near = near_of(given.near_to);
    return options;
}

/// What the record of a task is to hold.
struct Layout {
    Layout(const heddle_argument_t* arguments, size_t count, bool recorded, Accesses& accesses)
        : first_value(add_aligned(sizeof(Closure), count * sizeof(Argument))), bytes(first_value) {
        size_t scratch = 0;
        for (size_t i = 0; i < count; ++i) {
            const heddle_argument_t& argument = arguments[i];
            check(argument, i, recorded);
            changes |= argument.mode == HEDDLE_VALUE || argument.mode == HEDDLE_REDUX;
            shares |= is_future(argument.mode);
            if (is_data(argument.mode))
                accesses.add(&object(argument.data).handle.checked(), access_of(argument.mode),
                             reduction_of(argument));
            else if (is_future(argument.mode))
                accesses.add(&future_of(argument).view(), AccessMode::kIn, nullptr);
            else if (argument.mode == HEDDLE_VALUE)
                bytes = add_aligned(bytes, argument.bytes);
            else
                scratch = add_aligned(scratch, argument.bytes);
        }
    }

    const size_t first_value;
    size_t bytes;
    bool changes = false;  ///< a run may change it
    bool shares = false;   ///< it has shares of futures
};

/// Throws nothing: what it adds was added before.
void build(Closure& closure, const heddle_argument_t* arguments, const Layout& layout,
           const Accesses& accesses) {
    size_t value = layout.first_value;
    uint32_t datum = 0;
    for (size_t i = 0; i < closure.count; ++i) {
        const heddle_argument_t& given = arguments[i];
        auto& argument =
            *new (closure.arguments() + i) Argument{given.mode, nullptr, given.bytes, 0, nullptr, nullptr};
        if (is_data(given.mode)) {
            argument.data = accesses.data()[datum++];
            if (given.mode == HEDDLE_REDUX)
                argument.reduction = static_cast<const heddle_reduction_t*>(given.pointer);
        } else if (is_future(given.mode)) {
            ++datum;
            argument.future = &future_of(given);
            argument.future->share();
            argument.bytes = argument.future->bytes;
        } else if (given.mode == HEDDLE_VALUE) {
            argument.offset = value;
            std::memcpy(reinterpret_cast<std::byte*>(&closure) + value, given.pointer, given.bytes);
            value = add_aligned(value, given.bytes);
        } else {
            argument.offset = closure.scratch_bytes;
            closure.scratch_bytes = add_aligned(closure.scratch_bytes, given.bytes);
        }
    }
}

}  // namespace

void insert(const Destination& to, heddle_function_t function, const heddle_argument_t* arguments,
            size_t count, const heddle_task_options_t* options) {
    if (function == nullptr) refuse("a task has no function");
    if (arguments == nullptr && count > 0) refuse("a task has arguments, and no array of them");
    if (count > UINT32_MAX / 2) throw Error(ErrorCode::kLimit, "a task cannot have so many arguments");
    Accesses accesses(count + 1);
    const Layout layout(arguments, count, to.recording != nullptr, accesses);
    if (to.result != nullptr) accesses.add(&to.result->view(), AccessMode::kOut, nullptr);
    const TaskOptions said = options == nullptr ? TaskOptions() : options_of(*options);
    detail::Insertion insertion(to.sequence, {&Closure::body, layout.bytes, accesses.count(),
                                              !layout.shares && to.result == nullptr, to.result != nullptr});
    const bool copied = to.recording != nullptr && layout.changes;
    auto& closure = *new (insertion.closure())
                        Closure{function, said.name, count, 0, copied ? layout.bytes : 0, to.result};
    if (to.result != nullptr) to.result->share();
    build(closure, arguments, layout, accesses);
    const TaskOptions* const kept = options == nullptr ? nullptr : &said;
    if (to.recording == nullptr)
        insertion.commit(accesses.data(), accesses.modes(), kept, accesses.reductions());
    else
        insertion.record(*to.recording, accesses.data(), accesses.modes(), kept, accesses.reductions());
}

}  // namespace heddle::c
