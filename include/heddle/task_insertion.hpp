// TaskOptions, and how a task is handed over: for Sequence and Recording, and for interfaces of other
// languages.
//
// An Insertion is of one thread, for one task: it has the task's memory, into which the caller builds a
// closure, and names the data. After commit() the task is the runtime's; without it nothing has happened.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "heddle/cpu_set.hpp"
#include "heddle/task_arguments.hpp"

namespace heddle {

/// Where a task shall run if it may choose: on CPUs of its runtime's that are near to something.
class Near {
  public:
    enum class Kind : uint8_t { kNothing, kCpu, kNode, kData };

    Near() = default;
    [[nodiscard]] static Near cpu(int cpu) { return {Kind::kCpu, cpu, nullptr}; }
    /// As Machine counts them.
    [[nodiscard]] static Near numa_node(int node) { return {Kind::kNode, node, nullptr}; }
    /// The NUMA node where the data lie when the task is inserted.
    [[nodiscard]] static Near data(const Data& data) { return memory(data.view().address); }
    /// The same of any memory.
    [[nodiscard]] static Near memory(const void* address) { return {Kind::kData, 0, address}; }

    [[nodiscard]] Kind kind() const { return kind_; }
    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] const void* address() const { return address_; }

  private:
    Near(Kind kind, int number, const void* address) : kind_(kind), number_(number), address_(address) {}
    Kind kind_ = Kind::kNothing;
    int number_ = 0;
    const void* address_ = nullptr;
};

/// What may be said of a task besides its arguments.
struct TaskOptions {
    /// Higher ones first, among those that could run; of INT_MIN one comes every 100 ms all the same.
    int priority = 0;
    const char* name = nullptr;  ///< for traces and errors; must outlive the runtime (a literal)
    /// The task runs on these alone, which are the runtime's. Not set: on any of the runtime's.
    std::optional<CpuSet> cpus = {};
    Near near = {};
};

namespace detail {

/// What is given for a task's function: with TaskOptions before it another overload is meant.
template <class Function>
concept TaskFunction = !std::is_same_v<std::decay_t<Function>, TaskOptions>;

struct RecordingState;
struct SequenceState;

/// What is done with a task's closure: it is run once or never, and then destroyed. kCancel, inside a handler
/// of the error that is the reason, is for tasks that want to know that they never run.
enum class BodyAction : uint8_t { kRun, kDestroy, kCancel };
using Body = void (*)(void* closure, BodyAction action);

struct TaskShape {
    Body body;
    size_t closure_bytes;
    uint32_t accesses;
    bool trivial;                 ///< the closure needs no destruction
    bool told_of_cancel = false;  ///< its body wants kCancel
    bool keeps_data = false;      ///< it looks after what is kept of its data elsewhere
};

/// A task between its allocation and its insertion: the closure is built in it, its data are named.
class HEDDLE_API Insertion {
  public:
    Insertion(SequenceState& sequence, const TaskShape& shape);
    /// Frees the task where it was not inserted; its closure was never built then, or was destroyed.
    ~Insertion() {
        if (task_ != nullptr) abandon();
    }
    Insertion(const Insertion&) = delete;
    Insertion& operator=(const Insertion&) = delete;

    [[nodiscard]] void* closure() const { return closure_; }
    /// It follows others as a writer does, and writes nothing.
    void look_on() noexcept;
    /// `reductions`: of the data with kRedux; other entries are not looked at.
    void commit(const DataView* const* data, const AccessMode* modes, const TaskOptions* options,
                const Reduction* const* reductions = nullptr);
    /// As commit(), for a task that is kept and run by each replay. It was built for the recording's own
    /// sequence.
    void record(RecordingState& recording, const DataView* const* data, const AccessMode* modes,
                const TaskOptions* options, const Reduction* const* reductions);

  private:
    void allocate(const TaskShape& shape, size_t bytes);
    void name(const DataView* const* data, const AccessMode* modes, const TaskOptions* options,
              const Reduction* const* reductions);
    void abandon();
    SequenceState& sequence_;
    void* task_;
    void* closure_;
};

/// Of a function with its values that are copied as bytes, and need no destruction.
template <size_t kBytes>
struct PlainClosure {
    alignas(16) std::byte bytes[kBytes];
};
inline constexpr size_t kSmallClosure = 48, kLargestPlain = 256;
template <class Closure>
inline constexpr bool kIsPlain = std::is_trivially_copyable_v<Closure> && sizeof(Closure) <= kLargestPlain;

/// One of the data of a plain task, which it reads or writes.
struct PlainUse {
    const DataView* data;
    AccessMode mode;
};

/// A whole Insertion in one call, as fine tasks are without options: of a small task without data, and of one
/// with `count` of them; `bytes` is kSmallClosure or more. Throws kLimit where memory is short,
/// kInvalidArgument for data of another runtime, and has not inserted it then.
HEDDLE_API void insert_plain(SequenceState& sequence, Body body, const PlainClosure<kSmallClosure>& closure);
HEDDLE_API void insert_plain(SequenceState& sequence, Body body, const std::byte* closure, uint32_t bytes,
                             const PlainUse* uses, uint32_t count);

template <class Function, class... Arguments>
struct Closure {
    Function function;
    ArgumentPack<Arguments...> arguments;

    static void body(void* self, BodyAction action) {
        auto& closure = *static_cast<Closure*>(self);
        if (action == BodyAction::kDestroy)
            closure.~Closure();
        else
            (void)call(closure.function, closure.arguments);
    }
};

/// Of a task for devices, which keep copies of its data (heddle/device_variant.hpp).
template <class Function, class... Arguments>
struct KeepingClosure : Closure<Function, Arguments...> {
    static constexpr bool kKeeps = true;
};
template <class Closure>
inline constexpr bool kKeepsData = requires {
    Closure::kKeeps;
};

/// Of a task that has a future.
template <class Result, class Function, class... Arguments>
struct PromiseClosure {
    Function function;
    ArgumentPack<Arguments...> arguments;
    std::shared_ptr<FutureValue<Result>> result;

    static void body(void* self, BodyAction action) {
        auto& closure = *static_cast<PromiseClosure*>(self);
        if (action == BodyAction::kDestroy) return closure.~PromiseClosure();
        if (action == BodyAction::kCancel) return closure.result->settle(std::current_exception());
        try {
            if constexpr (std::is_void_v<Result>) {
                call(closure.function, closure.arguments);
                closure.result->value.emplace();
            } else {
                closure.result->value.emplace(call(closure.function, closure.arguments));
            }
        } catch (...) {
            closure.result->settle(std::current_exception());
            throw;
        }
        closure.result->settle(nullptr);
    }
};

/// Of a task that is run again and again: each time with values and, where it changes itself, a function as
/// they were recorded.
template <class Function, class... Arguments>
struct RecordedClosure {
    Function function;
    ArgumentPack<Arguments...> arguments;

    static void body(void* self, BodyAction action) {
        auto& closure = *static_cast<RecordedClosure*>(self);
        if (action == BodyAction::kDestroy) return closure.~RecordedClosure();
        if constexpr (sizeof(RecordedClosure) > kMostOnStack) {
            const auto arguments = std::make_unique<ArgumentPack<Arguments...>>(closure.arguments);
            run(closure.function, *arguments);
        } else {
            auto arguments = closure.arguments;
            run(closure.function, arguments);
        }
    }

  private:
    /// Bytes of copies; tasks run on small stacks.
    static constexpr size_t kMostOnStack = 512;

    static void run(const Function& recorded, ArgumentPack<Arguments...>& arguments) {
        if constexpr (can_call<const Function, Arguments...>()) {
            (void)call(recorded, arguments);
        } else if constexpr (sizeof(RecordedClosure) > kMostOnStack) {
            const auto function = std::make_unique<Function>(recorded);
            (void)call(*function, arguments);
        } else {
            auto function = recorded;
            (void)call(function, arguments);
        }
    }
};

/// The data of a task, in the order in which Insertion takes them.
template <size_t Count>
struct NamedData {
    const DataView* data[Count + 1];
    AccessMode modes[Count + 1];
    const Reduction* reductions[Count + 1];  // looked at for kRedux alone
    size_t count = 0;

    void add(const DataView* datum, AccessMode mode) {
        data[count] = datum;
        modes[count++] = mode;
    }
    template <class D, AccessMode M>
    void note(const DataArgument<D, M>& argument) {
        add(argument.data, M);
    }
    template <class D, class Combine>
    void note(const ReduxArgument<D, Combine>& argument) {
        reductions[count] = &argument.kReduction;
        add(argument.data, AccessMode::kRedux);
    }
    template <class T, bool Gives>
    void note(const FutureArgument<T, Gives>& argument) {
        add(&argument.state->view(), AccessMode::kIn);
    }
    template <class Argument>
    void note(const Argument&) {}
};

template <class D, AccessMode M>
void name_use(PlainUse* uses, size_t& count, const DataArgument<D, M>& argument) {
    uses[count++] = {argument.data, M};
}
template <class Argument>
void name_use(PlainUse*, size_t&, const Argument&) {}

/// Compiles, and is true, for what can be a task.
template <class Function, class... Arguments>
constexpr bool check_task() {
    static_assert((kIsArgument<Arguments> && ...),
                  "arguments of tasks are given by in(), out(), inout(), commute(), redux(), after(), "
                  "value() or scratch()");
    if constexpr (!(kIsArgument<Arguments> && ...)) {
        return false;
    } else {
        constexpr bool kCanBeCalled = can_call<std::decay_t<Function>, Arguments...>();
        static_assert(kCanBeCalled,
                      "the task's function cannot be called with what its arguments stand for: in() gives "
                      "const T&, std::span<const T> or MatrixView<const T>, the others the same without "
                      "const");
        constexpr bool kLosesNothing = !writes_a_copy<std::decay_t<Function>, Arguments...>();
        static_assert(kLosesNothing,
                      "the task's function takes by value what it is to write, so that what it writes would "
                      "be lost: let it take T&");
        return kCanBeCalled && kLosesNothing;
    }
}

/// Inserts, or with a `recording` records. `result`: what the task writes besides, or null. `build` makes the
/// Closure.
template <class Closure, class Build, class... Arguments>
void insert_task(SequenceState& sequence, RecordingState* recording, const TaskOptions* options,
                 const DataView* result, const Build& build, const Arguments&... arguments) {
    static_assert(alignof(Closure) <= 16,
                  "a task's function and values need no more than 16 bytes alignment");
    constexpr size_t kData = (size_t{kIsData<Arguments>} + ... + 0);
    if constexpr (kIsPlain<Closure> && !kKeepsData<Closure> && (kIsPlainArgument<Arguments> && ...)) {
        if (recording == nullptr && options == nullptr && result == nullptr) {
            constexpr size_t kBytes = std::max(sizeof(Closure), kSmallClosure);
            PlainClosure<kBytes> closure;
            build(&closure);
            if constexpr (kData == 0 && kBytes == kSmallClosure)
                return insert_plain(sequence, &Closure::body, closure);
            PlainUse uses[kData + 1];
            size_t count = 0;
            (name_use(uses, count, arguments), ...);
            return insert_plain(sequence, &Closure::body, closure.bytes, kBytes, uses, kData);
        }
    }
    NamedData<kData> named;
    (named.note(arguments), ...);
    if (result != nullptr) named.add(result, AccessMode::kOut);
    Insertion insertion(sequence,
                        {&Closure::body, sizeof(Closure), static_cast<uint32_t>(named.count),
                         std::is_trivially_destructible_v<Closure>, result != nullptr, kKeepsData<Closure>});
    build(insertion.closure());
    if (recording == nullptr)
        insertion.commit(named.data, named.modes, options, named.reductions);
    else
        insertion.record(*recording, named.data, named.modes, options, named.reductions);
}

}  // namespace detail
}  // namespace heddle
