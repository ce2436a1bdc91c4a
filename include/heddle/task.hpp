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
// sequences of a runtime; a sequence is what one waits for, and where errors arrive. Tasks that a task
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

#include <cstddef>
#include <cstdint>
#include <exception>
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
struct FutureState;
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

enum class AccessMode : uint8_t { kIn, kOut, kInOut };

/// What may be said of a task besides its arguments.
struct TaskOptions {
    int priority = 0;            ///< higher ones first, among those that could run
    const char* name = nullptr;  ///< for traces and errors; must outlive the runtime (a literal)
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
template <class T>
inline constexpr bool kIsArgument<ValueArgument<T>> = true;
template <class T>
inline constexpr bool kIsArgument<ScratchArgument<T>> = true;

template <class A>
inline constexpr bool kIsData = false;
template <class D, AccessMode M>
inline constexpr bool kIsData<DataArgument<D, M>> = true;

/// What is done with a task's closure: it is run once or never, and then destroyed.
enum class BodyAction : uint8_t { kRun, kDestroy };
using Body = void (*)(void* closure, BodyAction action);

struct TaskShape {
    Body body;
    size_t closure_bytes;
    uint32_t accesses;
    bool trivial;  ///< the closure needs no destruction
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
    void commit(const DataView* const* data, const AccessMode* modes, const TaskOptions* options);

  private:
    void abandon();
    SequenceState& sequence_;
    void* task_;
    void* closure_;
};

template <class Function, class... Arguments>
struct Closure {
    Function function;
    std::tuple<Arguments...> arguments;

    static void body(void* self, BodyAction action) {
        auto& closure = *static_cast<Closure*>(self);
        if (action == BodyAction::kDestroy)
            closure.~Closure();
        else
            std::apply([&](auto&... arguments) { (void)closure.function(arguments.get()...); },
                       closure.arguments);
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

/// The result of a task, or its error.
template <class T>
class Future;

class HEDDLE_API Sequence {
  public:
    explicit Sequence(Runtime& runtime);
    /// Waits.
    ~Sequence();
    Sequence(const Sequence&) = delete;
    Sequence& operator=(const Sequence&) = delete;

    /// A task that calls `function` with what in(), out(), inout(), value() and scratch() stand for, in their
    /// order. Throws kLimit where memory is short, kInvalidArgument for data of another runtime; nothing is
    /// inserted then. May run other tasks meanwhile, where more than 2,048 of this sequence wait: a task that
    /// waits for what its inserter does later does so by a BlockCondition (heddle/pause.hpp), which holds
    /// nobody up.
    template <class Function, class... Arguments>
    requires(!std::is_same_v<std::decay_t<Function>, TaskOptions>) void insert(Function&& function,
                                                                               Arguments... arguments) {
        insert_with(nullptr, std::forward<Function>(function), std::move(arguments)...);
    }
    template <class Function, class... Arguments>
    void insert(const TaskOptions& options, Function&& function, Arguments... arguments) {
        insert_with(&options, std::forward<Function>(function), std::move(arguments)...);
    }

    /// Until all of its tasks so far have ended; the calling thread runs tasks meanwhile. Rethrows the first
    /// error. Throws kInvalidArgument in a task of this very sequence, which would wait for itself.
    void wait();

    [[nodiscard]] detail::SequenceState& state() const { return *state_; }

  private:
    template <class Function, class... Arguments>
    void insert_with(const TaskOptions* options, Function&& function, Arguments... arguments) {
        static_assert((detail::kIsArgument<Arguments> && ...),
                      "arguments of tasks are given by in(), out(), inout(), value() or scratch()");
        using Closure = detail::Closure<std::decay_t<Function>, Arguments...>;
        static_assert(alignof(Closure) <= 16,
                      "a task's function and values need no more than 16 bytes alignment");
        constexpr size_t kData = (size_t{detail::kIsData<Arguments>} + ... + 0);
        constexpr detail::TaskShape kShape{&Closure::body, sizeof(Closure), kData,
                                           std::is_trivially_destructible_v<Closure>};
        const detail::DataView* data[kData + 1];
        AccessMode modes[kData + 1];
        [[maybe_unused]] size_t count = 0;
        (note(arguments, data, modes, count), ...);
        detail::Insertion insertion(*state_, kShape);
        new (insertion.closure()) Closure{std::forward<Function>(function), {std::move(arguments)...}};
        insertion.commit(data, modes, options);
    }
    template <class D, AccessMode M>
    static void note(const detail::DataArgument<D, M>& argument, const detail::DataView** data,
                     AccessMode* modes, size_t& count) {
        data[count] = argument.data;
        modes[count++] = M;
    }
    template <class Argument>
    static void note(const Argument&, const detail::DataView**, AccessMode*, size_t&) {}

    std::shared_ptr<detail::SequenceState> state_;
};

}  // namespace heddle
