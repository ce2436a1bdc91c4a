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
// each on a copy that is combined with the others' later). Tasks that a task inserts, into a Sequence of its
// own, are ordered among themselves: data of their parent's are theirs to use.
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

#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "heddle/cpu_set.hpp"
#include "heddle/data.hpp"
#include "heddle/export.hpp"
#include "heddle/future.hpp"
#include "heddle/task_insertion.hpp"

namespace heddle {

struct RuntimeOptions {
    /// As Runtime::engines() lists them; upper and lower case are the same.
    std::string engine = "native";
    /// Tasks run on these alone. Empty: on all that the process may use.
    CpuSet cpus;
    /// At most so many run at once, the thread that waits included. 0: as many as CPUs, and never more.
    int workers = 0;
    /// Of the stack that a task has where the engine gives it one of its own, as all do that can pause it: a
    /// power of two from 16 KiB to 1 GiB, of which only what is used takes memory. A task that needs more
    /// ends the process (SIGSEGV). 0: what HEDDLE_STACK_BYTES says, or 64 KiB.
    size_t stack_bytes = 0;
};

struct EngineInfo {
    std::string name;  ///< for RuntimeOptions::engine
    bool available;
    std::string version;  ///< of its runtime's library; empty where that is missing
    std::string reason;   ///< why it is not available, and how to get it
};

namespace detail {
struct RuntimeState;
struct SequenceState;
}  // namespace detail

/// Tasks and data belong to one. Several may live at once.
class HEDDLE_API Runtime {
  public:
    /// Throws kInvalidArgument for an unknown engine, CPUs that the process may not use, fewer than 0
    /// workers, or a stack that its engine cannot make; kUnavailable for an engine whose library is missing:
    /// the message says how to get it; kLimit and kSystem where there can be no threads.
    explicit Runtime(RuntimeOptions options = {});
    /// For the library's own layers.
    explicit Runtime(std::unique_ptr<detail::RuntimeState> state);
    /// Waits for all tasks. Not in one of them.
    ~Runtime();
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    /// Its name.
    [[nodiscard]] std::string engine() const;
    /// Those that tasks may run on.
    [[nodiscard]] CpuSet cpus() const;
    /// Waits for all tasks and goes on with another engine; data stay. Tasks that other threads insert
    /// meanwhile wait for it. Throws as the constructor, and then goes on with the old one; kInvalidArgument
    /// in a task.
    void switch_engine(std::string_view engine);
    /// Until all tasks that were inserted so far have ended. Errors stay with their sequences. Throws
    /// kInvalidArgument in a task of this runtime, which would wait for itself.
    void wait();

    /// All that this build and machine know.
    [[nodiscard]] static std::vector<EngineInfo> engines();

    /// For the library's own layers, as Sequence::state().
    [[nodiscard]] detail::RuntimeState& state() const { return *state_; }

  private:
    std::unique_ptr<detail::RuntimeState> state_;
};

/// Tasks that are waited for together, and whose errors are told together. Must not outlive its runtime.
class HEDDLE_API Sequence {
  public:
    /// Made in a task of the runtime, it is for children of that one.
    explicit Sequence(Runtime& runtime);
    /// Waits, whatever that takes: where there is no memory to pause the task that it is in, others run on
    /// top of that one meanwhile. Not in a task of its own, which may hold the last reference to it.
    ~Sequence();
    Sequence(const Sequence&) = delete;
    Sequence& operator=(const Sequence&) = delete;

    /// A task that calls `function` with what in(), out(), inout(), commute(), redux(), after(), value() and
    /// scratch() stand for, in their order. Throws kLimit where memory is short, kInvalidArgument for data of
    /// another runtime or a TaskOptions::cpus that is empty or has CPUs that are not the runtime's; nothing
    /// is inserted then. May run other tasks meanwhile, where more than 2,048 of this sequence wait: a task
    /// that waits for what its inserter does later does so by a BlockCondition (heddle/pause.hpp), which
    /// holds nobody up.
    template <detail::TaskFunction Function, class... Arguments>
    void insert(Function&& function, Arguments&&... arguments) {
        insert_with(nullptr, std::forward<Function>(function), std::forward<Arguments>(arguments)...);
    }
    template <class Function, class... Arguments>
    void insert(const TaskOptions& options, Function&& function, Arguments&&... arguments) {
        insert_with(&options, std::forward<Function>(function), std::forward<Arguments>(arguments)...);
    }

    /// The same with a Future of what the function returns, or throws; the latter is rethrown by wait(), too.
    template <detail::TaskFunction Function, class... Arguments>
    [[nodiscard]] auto async(Function&& function, Arguments&&... arguments) {
        return async_with(nullptr, std::forward<Function>(function), std::forward<Arguments>(arguments)...);
    }
    template <class Function, class... Arguments>
    [[nodiscard]] auto async(const TaskOptions& options, Function&& function, Arguments&&... arguments) {
        return async_with(&options, std::forward<Function>(function), std::forward<Arguments>(arguments)...);
    }

    /// Until all of its tasks so far have ended; the calling thread runs tasks meanwhile. Rethrows the first
    /// error. Throws kInvalidArgument in a task of this very sequence, or of one that it waits for by tasks
    /// that wait in it: that would never end. Throws kLimit in a task where there is no memory to pause it.
    void wait();

    [[nodiscard]] detail::SequenceState& state() const { return *state_; }

  private:
    template <class Function, class... Arguments>
    void insert_with(const TaskOptions* options, Function&& function, Arguments&&... arguments) {
        if constexpr (detail::check_task<Function, std::decay_t<Arguments>...>()) {
            using Closure = detail::Closure<std::decay_t<Function>, std::decay_t<Arguments>...>;
            detail::insert_task<Closure>(
                *state_, nullptr, options, nullptr,
                [&](void* at) {
                    new (at)
                        Closure{std::forward<Function>(function), {{std::forward<Arguments>(arguments)}...}};
                },
                arguments...);
        }
    }
    template <class Function, class... Arguments>
    auto async_with(const TaskOptions* options, Function&& function, Arguments&&... arguments) {
        if constexpr (detail::check_task<Function, std::decay_t<Arguments>...>()) {
            using Result = std::decay_t<decltype(detail::call(
                std::declval<std::decay_t<Function>&>(),
                std::declval<detail::ArgumentPack<std::decay_t<Arguments>...>&>()))>;
            using Closure =
                detail::PromiseClosure<Result, std::decay_t<Function>, std::decay_t<Arguments>...>;
            auto result = detail::make_future_value<Result>(*state_);
            detail::insert_task<Closure>(
                *state_, nullptr, options, &result->view(),
                [&](void* at) {
                    new (at) Closure{
                        std::forward<Function>(function), {{std::forward<Arguments>(arguments)}...}, result};
                },
                arguments...);
            return Future<Result>(std::move(result));
        }
    }

    std::shared_ptr<detail::SequenceState> state_;
};

}  // namespace heddle
