// Runtime, Sequence, Future: tasks that are ordered by the data they name.
//
//     heddle::Runtime runtime;                       // the native engine, on all CPUs
//     heddle::Vector<double> x(runtime, 1000);
//     heddle::Sequence sequence(runtime);
//     sequence.insert([](std::span<double> x) { std::fill(x.begin(), x.end(), 1.0); }, out(x));
//     sequence.insert([](std::span<const double> x, double& sum) { ... }, in(x), inout(sum));
//     sequence.wait();
//
// Tasks run as if one after the other in the order of insertion (sequential task flow): one that writes data
// follows all earlier ones that use it, one that reads follows the last that wrote. This holds across all
// sequences of a runtime; a sequence is what one waits for, and where errors arrive. Tasks that only add
// something to data may leave their order open: commute() (any order, one at a time) and redux() (at once,
// each on a copy that is combined with the others' later). Tasks that a task
// inserts, into a Sequence of its own, are ordered among themselves: data of their parent's are theirs to
// use.
//
// An exception out of a task is rethrown by wait() of its sequence. Tasks that would have read what it should
// have written do not run, and so on from them; their sequences' waits throw the same. Others go on. wait()
// ends that: what is inserted afterwards runs.
//
// The function and its values are copied into the task. Any thread may insert, several at once into one
// sequence; destruction of a Runtime or Sequence is for one thread, waits, and drops what errors are left.
// Nothing outlives the process; after fork(2) a child must not use its parent's.
//
// Source: seed 003 section 5.2 (the unified interface), with types in the place of flags.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "heddle/cpu_set.hpp"
#include "heddle/data.hpp"
#include "heddle/export.hpp"
#include "heddle/future.hpp"

namespace heddle {

struct RuntimeOptions {
    /// As Runtime::engines() lists them; upper and lower case are the same.
    std::string engine = "native";
    /// Tasks run on these alone. Empty: on all that the process may use.
    CpuSet cpus;
    /// At most so many run at once, the thread that waits included. 0: as many as CPUs.
    int workers = 0;
};

struct EngineInfo {
    std::string name;
    bool available;
    std::string version;
    std::string reason;  ///< why it is not available, and how to get it
};

namespace detail {
struct RuntimeState;
struct SequenceState;
}  // namespace detail

/// Tasks and data belong to one. Several may live at once.
class HEDDLE_API Runtime {
  public:
    /// Throws kInvalidArgument for an unknown engine or CPUs that the process may not use, kUnavailable for
    /// an engine whose library is missing: the message says how to get it.
    explicit Runtime(RuntimeOptions options = {});
    ~Runtime();
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    [[nodiscard]] std::string engine() const;
    [[nodiscard]] CpuSet cpus() const;
    /// Waits for all tasks and goes on with another engine; data stay. Tasks that other threads insert
    /// meanwhile wait for it. Throws as the constructor, and then goes on with the old one; kInvalidArgument
    /// in a task of this runtime.
    void switch_engine(std::string_view engine);
    /// Until all tasks that were inserted so far have ended. Errors stay with their sequences.
    void wait();

    /// All that this build and machine know.
    [[nodiscard]] static std::vector<EngineInfo> engines();

    [[nodiscard]] detail::RuntimeState& state() const { return *state_; }

  private:
    std::unique_ptr<detail::RuntimeState> state_;
};

enum class AccessMode : uint8_t { kIn, kOut, kInOut, kCommute, kRedux };

/// Where a task shall run if it may choose: on CPUs of its runtime's that are near to something.
class Near {
  public:
    enum class Kind : uint8_t { kNothing, kCpu, kNode, kData };

    Near() = default;
    [[nodiscard]] static Near cpu(int cpu) { return {Kind::kCpu, cpu, nullptr}; }
    /// As Machine counts them.
    [[nodiscard]] static Near numa_node(int node) { return {Kind::kNode, node, nullptr}; }
    /// The NUMA node where the data lie when the task is inserted.
    [[nodiscard]] static Near data(const Data& data) { return {Kind::kData, 0, data.view().address}; }

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
    int priority = 0;            ///< higher ones first, among those that could run
    const char* name = nullptr;  ///< for traces and errors; must outlive the runtime (a literal)
    /// The task runs on these alone, which are the runtime's. Not set: on any of the runtime's.
    std::optional<CpuSet> cpus = {};
    Near near = {};
};

namespace detail {

template <class D, AccessMode M>
struct DataArgument {
    DataView* data;
    decltype(auto) get() const {
        if constexpr (M == AccessMode::kIn)
            return static_cast<typename D::ConstView>(D::see(*data));
        else
            return static_cast<typename D::View>(D::see(*data));
    }
};

/// What is done with private copies of data.
struct Reduction {
    void (*fill)(const DataView& copy, const void* neutral);
    void (*combine)(const DataView& into, const DataView& copy);
};
/// In a task, for data that it has with redux().
[[nodiscard]] HEDDLE_API const DataView& private_copy(const DataView& data, const Reduction& reduction,
                                                      const void* neutral);

template <class D, class Combine>
struct ReduxArgument {
    using T = typename D::Element;
    DataView* data;
    T neutral;

    decltype(auto) get() const {
        return static_cast<typename D::View>(D::see(private_copy(*data, kReduction, &neutral)));
    }

    static void fill(const DataView& copy, const void* neutral) {
        std::uninitialized_fill_n(static_cast<T*>(copy.address), copy.rows * copy.columns,
                                  *static_cast<const T*>(neutral));
    }
    static void combine(const DataView& into, const DataView& copy) {
        if constexpr (std::is_invocable_r_v<T, Combine, const T&, const T&>) {
            auto* target = static_cast<T*>(into.address);
            const auto* source = static_cast<const T*>(copy.address);
            for (size_t j = 0; j < into.columns; ++j)
                for (size_t i = 0; i < into.rows; ++i) {
                    T& element = target[i + j * into.leading];
                    element = static_cast<T>(Combine{}(std::as_const(element), source[i + j * copy.leading]));
                }
        } else {
            Combine{}(static_cast<typename D::View>(D::see(into)),
                      static_cast<typename D::ConstView>(D::see(copy)));
        }
    }
    static constexpr Reduction kReduction{&fill, &combine};
};

template <class T>
struct ValueArgument {
    T value;
    T& get() { return value; }
};

template <class T>
struct ScratchArgument {
    size_t size;
    struct Memory {
        std::unique_ptr<T[]> elements;
        size_t size;
        operator std::span<T>() const { return {elements.get(), size}; }
    };
    Memory get() const { return {std::make_unique_for_overwrite<T[]>(size), size}; }
};

template <class A>
inline constexpr bool kIsArgument = false;
template <class D, AccessMode M>
inline constexpr bool kIsArgument<DataArgument<D, M>> = true;
template <class D, class Combine>
inline constexpr bool kIsArgument<ReduxArgument<D, Combine>> = true;
template <class T, bool Gives>
inline constexpr bool kIsArgument<FutureArgument<T, Gives>> = true;
template <class T>
inline constexpr bool kIsArgument<ValueArgument<T>> = true;
template <class T>
inline constexpr bool kIsArgument<ScratchArgument<T>> = true;

template <class A>
inline constexpr bool kIsData = false;
template <class D, AccessMode M>
inline constexpr bool kIsData<DataArgument<D, M>> = true;
template <class D, class Combine>
inline constexpr bool kIsData<ReduxArgument<D, Combine>> = true;
template <class T, bool Gives>
inline constexpr bool kIsData<FutureArgument<T, Gives>> = true;

/// Does the function get something for it?
template <class A>
inline constexpr bool kGives = true;
template <class T>
inline constexpr bool kGives<FutureArgument<T, false>> = false;

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

  private:
    void abandon();
    SequenceState& sequence_;
    void* task_;
    void* closure_;
};

/// Which of the arguments the function gets something for.
template <class... Arguments>
constexpr auto giving() {
    std::array<size_t, (size_t{kGives<Arguments>} + ... + 0)> result{};
    constexpr bool kOfEach[] = {kGives<Arguments>..., false};
    for (size_t i = 0, found = 0; i < sizeof...(Arguments); ++i)
        if (kOfEach[i]) result[found++] = i;
    return result;
}

template <class Function, class... Arguments>
decltype(auto) call(Function& function, std::tuple<Arguments...>& arguments) {
    static constexpr auto kGiving = giving<Arguments...>();
    return [&]<size_t... I>(std::index_sequence<I...>)->decltype(auto) {
        return function(std::get<kGiving[I]>(arguments).get()...);
    }
    (std::make_index_sequence<kGiving.size()>{});
}

template <class Function, class... Arguments>
struct Closure {
    Function function;
    std::tuple<Arguments...> arguments;

    static void body(void* self, BodyAction action) {
        auto& closure = *static_cast<Closure*>(self);
        if (action == BodyAction::kDestroy)
            closure.~Closure();
        else
            (void)call(closure.function, closure.arguments);
    }
};

template <class Function, class... Arguments>
constexpr bool can_call() {
    constexpr auto kGiving = giving<Arguments...>();
    return []<size_t... I>(std::index_sequence<I...>) {
        return std::is_invocable_v<
            Function&,
            decltype(std::declval<std::tuple_element_t<kGiving[I], std::tuple<Arguments...>>&>().get())...>;
    }
    (std::make_index_sequence<kGiving.size()>{});
}

/// Of a task that has a future.
template <class Result, class Function, class... Arguments>
struct PromiseClosure {
    Function function;
    std::tuple<Arguments...> arguments;
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

}  // namespace detail

/// Reads. The function gets D's ConstView.
template <class D>
[[nodiscard]] auto in(const D& data) {
    return detail::DataArgument<D, AccessMode::kIn>{&data.view()};
}
/// Writes all of it and does not look at what was there.
template <class D>
[[nodiscard]] auto out(D& data) {
    return detail::DataArgument<D, AccessMode::kOut>{&data.view()};
}
/// Reads and writes.
template <class D>
[[nodiscard]] auto inout(D& data) {
    return detail::DataArgument<D, AccessMode::kInOut>{&data.view()};
}
/// Reads and writes, in any order with others that do, and never two at once: for what may be added in any
/// order. Between two uses of another kind. The function gets D's View. A task whose data are taken waits,
/// and no thread with it; of those that wait the one with the highest priority is next. The task may name the
/// same data but once.
template <class D>
[[nodiscard]] auto commute(D& data) {
    return detail::DataArgument<D, AccessMode::kCommute>{&data.view()};
}
/// Adds to the data, at the same time as others that do so with the same function. The task's function gets
/// D's View of a copy of its own, which is filled with `neutral` or holds what earlier ones have added; the
/// copies are combined into the data before the next use of another kind, and when no such task is left.
/// `combine` is T(const T&, const T&) for each two elements, or void(View into, ConstView copy) for all; it
/// has no state, and combine(neutral, v) is v. The task may name the same data but once.
template <class D, class Combine = std::plus<>>
[[nodiscard]] auto redux(D& data, typename D::Element neutral = {}, Combine = {}) {
    static_assert(std::is_empty_v<Combine>,
                  "the function that combines must have no state: a lambda without captures or an object "
                  "without members");
    static_assert(std::is_invocable_r_v<typename D::Element, Combine, const typename D::Element&,
                                        const typename D::Element&> ||
                      std::is_invocable_v<Combine, typename D::View, typename D::ConstView>,
                  "the function that combines is T(const T&, const T&) or void(View into, ConstView copy)");
    return detail::ReduxArgument<D, Combine>{&data.view(), neutral};
}
/// A copy, taken now. The function gets T&.
template <class T>
[[nodiscard]] auto value(T value) {
    return detail::ValueArgument<T>{std::move(value)};
}
/// Memory for `size` elements while the task runs, not initialised. The function gets std::span<T>.
template <class T>
[[nodiscard]] auto scratch(size_t size) {
    return detail::ScratchArgument<T>{size};
}

class HEDDLE_API Sequence {
  public:
    explicit Sequence(Runtime& runtime);
    /// Waits.
    ~Sequence();
    Sequence(const Sequence&) = delete;
    Sequence& operator=(const Sequence&) = delete;

    /// A task that calls `function` with what in(), out(), inout(), commute(), redux(), after(), value() and
    /// scratch() stand for, in their order. Throws kLimit where memory is short, kInvalidArgument for data of
    /// another runtime or a TaskOptions::cpus that is empty or has CPUs that are not the runtime's; nothing
    /// is inserted then. May run other tasks meanwhile, where more than 2,048 of this sequence wait: a task
    /// that waits for what its inserter does later does so by a BlockCondition (heddle/pause.hpp), which
    /// holds nobody up.
    template <class Function, class... Arguments>
    requires(!std::is_same_v<std::decay_t<Function>, TaskOptions>) void insert(Function&& function,
                                                                               Arguments... arguments) {
        insert_with(nullptr, std::forward<Function>(function), std::move(arguments)...);
    }
    template <class Function, class... Arguments>
    void insert(const TaskOptions& options, Function&& function, Arguments... arguments) {
        insert_with(&options, std::forward<Function>(function), std::move(arguments)...);
    }

    /// The same with a Future of what the function returns, or throws; the latter is rethrown by wait(), too.
    template <class Function, class... Arguments>
    requires(!std::is_same_v<std::decay_t<Function>, TaskOptions>)
        [[nodiscard]] auto async(Function&& function, Arguments... arguments) {
        return async_with(nullptr, std::forward<Function>(function), std::move(arguments)...);
    }
    template <class Function, class... Arguments>
    [[nodiscard]] auto async(const TaskOptions& options, Function&& function, Arguments... arguments) {
        return async_with(&options, std::forward<Function>(function), std::move(arguments)...);
    }

    /// Until all of its tasks so far have ended; the calling thread runs tasks meanwhile. Rethrows the first
    /// error. Throws kInvalidArgument in a task of this very sequence, which would wait for itself.
    void wait();

    [[nodiscard]] detail::SequenceState& state() const { return *state_; }

  private:
    template <class Function, class... Arguments>
    static constexpr void check() {
        static_assert((detail::kIsArgument<Arguments> && ...),
                      "arguments of tasks are given by in(), out(), inout(), commute(), redux(), after(), "
                      "value() or scratch()");
        if constexpr ((detail::kIsArgument<Arguments> && ...))
            static_assert(
                detail::can_call<std::decay_t<Function>, Arguments...>(),
                "the task's function cannot be called with what its arguments stand for: in() gives "
                "const T&, std::span<const T> or MatrixView<const T>, the others without const");
    }
    template <class Function, class... Arguments>
    void insert_with(const TaskOptions* options, Function&& function, Arguments... arguments) {
        check<Function, Arguments...>();
        using Closure = detail::Closure<std::decay_t<Function>, Arguments...>;
        commit<Closure>(
            options, nullptr,
            [&](void* at) {
                new (at) Closure{std::forward<Function>(function), {std::move(arguments)...}};
            },
            arguments...);
    }
    template <class Function, class... Arguments>
    auto async_with(const TaskOptions* options, Function&& function, Arguments... arguments) {
        check<Function, Arguments...>();
        using Result = std::decay_t<decltype(detail::call(std::declval<std::decay_t<Function>&>(),
                                                          std::declval<std::tuple<Arguments...>&>()))>;
        using Closure = detail::PromiseClosure<Result, std::decay_t<Function>, Arguments...>;
        auto result = detail::make_future_value<Result>(*state_);
        commit<Closure>(
            options, &result->view(),
            [&](void* at) {
                new (at) Closure{std::forward<Function>(function), {std::move(arguments)...}, result};
            },
            arguments...);
        return Future<Result>(std::move(result));
    }
    /// `result`: what the task writes besides, or null.
    template <class Closure, class Build, class... Arguments>
    void commit(const TaskOptions* options, const detail::DataView* result, const Build& build,
                const Arguments&... arguments) {
        static_assert(alignof(Closure) <= 16,
                      "a task's function and values need no more than 16 bytes alignment");
        constexpr size_t kData = (size_t{detail::kIsData<Arguments>} + ... + 0);
        const detail::DataView* data[kData + 1];
        AccessMode modes[kData + 1];
        const detail::Reduction* reductions[kData + 1];  // looked at for kRedux alone
        [[maybe_unused]] size_t count = 0;
        (note(arguments, data, modes, reductions, count), ...);
        data[kData] = result;
        modes[kData] = AccessMode::kOut;
        detail::Insertion insertion(
            *state_, {&Closure::body, sizeof(Closure), static_cast<uint32_t>(kData + (result != nullptr)),
                      std::is_trivially_destructible_v<Closure>, result != nullptr});
        build(insertion.closure());
        insertion.commit(data, modes, options, reductions);
    }
    template <class D, AccessMode M>
    static void note(const detail::DataArgument<D, M>& argument, const detail::DataView** data,
                     AccessMode* modes, const detail::Reduction**, size_t& count) {
        data[count] = argument.data;
        modes[count++] = M;
    }
    template <class D, class Combine>
    static void note(const detail::ReduxArgument<D, Combine>& argument, const detail::DataView** data,
                     AccessMode* modes, const detail::Reduction** reductions, size_t& count) {
        data[count] = argument.data;
        reductions[count] = &argument.kReduction;
        modes[count++] = AccessMode::kRedux;
    }
    template <class T, bool Gives>
    static void note(const detail::FutureArgument<T, Gives>& argument, const detail::DataView** data,
                     AccessMode* modes, const detail::Reduction**, size_t& count) {
        data[count] = &argument.state->view();
        modes[count++] = AccessMode::kIn;
    }
    template <class Argument>
    static void note(const Argument&, const detail::DataView**, AccessMode*, const detail::Reduction**,
                     size_t&) {}

    std::shared_ptr<detail::SequenceState> state_;
};

}  // namespace heddle
