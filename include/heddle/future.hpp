// Future: the result of a task, or its error: Sequence::async() returns one.
//
//     heddle::Future<double> norm = sequence.async([](std::span<const double> x) { ... }, in(x));
//     sequence.insert([](double norm, std::span<double> x) { ... }, in(norm), inout(x));   // follows it
//     std::cout << norm.get();
//
// Copies share the result, which lives as long as one of them or a task that was given one. Any thread may
// wait, inside tasks too: there the task is paused, as by BlockCondition (heddle/pause.hpp). A future does
// not wait when it is destroyed; an unfinished one must not outlive its Runtime.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "heddle/data.hpp"
#include "heddle/export.hpp"

namespace heddle {

namespace detail {

struct SequenceState;

/// All but the value. Settled once, by the task or by what cancels it; then whoever waits goes on.
class HEDDLE_API FutureState {
  public:
    /// Throws kLimit where memory is short.
    explicit FutureState(SequenceState& sequence);
    ~FutureState();
    FutureState(const FutureState&) = delete;
    FutureState& operator=(const FutureState&) = delete;

    /// The datum that the task writes and others read, for the order of tasks alone.
    [[nodiscard]] DataView& view() const noexcept;
    [[nodiscard]] bool settled() const noexcept { return settled_.load(std::memory_order_acquire); }
    void settle(std::exception_ptr error) noexcept;
    void wait() const;
    /// In a task that follows it.
    void wait_in_follower() const;
    /// Rethrows what it was settled with.
    void check() const {
        if (error_) std::rethrow_exception(error_);
    }

  private:
    struct Core;
    void wait_inside() const;  // of a task or a kernel

    std::unique_ptr<Core> core_;
    std::exception_ptr error_;          // written before settled_, with release, and never again
    std::atomic<bool> settled_{false};  // the value, too, is written before
};

/// void has a value that says nothing.
template <class T>
using FutureElement = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class T>
struct FutureValue : FutureState {
    using FutureState::FutureState;
    std::optional<FutureElement<T>> value;
};

}  // namespace detail

template <class T>
class Future {
  public:
    /// No task's: valid() is false.
    Future() = default;

    [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }
    /// True: get() returns, or throws, at once.
    [[nodiscard]] bool ready() const { return state().settled(); }
    /// Until the task has ended. Throws kInvalidArgument in that very task, in one that it waits for, itself
    /// or through others (for sequences and futures), and where valid() is false; kLimit in a task where
    /// there is no memory to pause it.
    void wait() const { state().wait(); }
    /// Waits for the result, which stays as long as a copy of this does. Throws what the task has thrown, or
    /// what it was cancelled for, and as wait().
    std::conditional_t<std::is_void_v<T>, void, std::add_lvalue_reference_t<const T>> get() const {
        detail::FutureValue<T>& it = state();
        it.wait();
        it.check();
        if constexpr (!std::is_void_v<T>) return *it.value;
    }

    /// For argument kinds. Throws kInvalidArgument where valid() is false.
    [[nodiscard]] detail::FutureValue<T>& state() const {
        if (state_ == nullptr) refuse_empty();
        return *state_;
    }
    [[nodiscard]] const std::shared_ptr<detail::FutureValue<T>>& shared() const {
        (void)state();
        return state_;
    }

  private:
    friend class Sequence;
    explicit Future(std::shared_ptr<detail::FutureValue<T>> state) : state_(std::move(state)) {}
    [[noreturn]] static void refuse_empty();

    std::shared_ptr<detail::FutureValue<T>> state_;
};

namespace detail {

[[noreturn]] HEDDLE_API void refuse_empty_future();
[[noreturn]] HEDDLE_API void refuse_for_memory();

/// Throws kLimit where memory is short.
template <class T>
std::shared_ptr<FutureValue<T>> make_future_value(SequenceState& sequence) {
    try {
        return std::make_shared<FutureValue<T>>(sequence);
    } catch (const std::bad_alloc&) {
        refuse_for_memory();
    }
}

/// The task follows the future's. `Gives`: and gets its value.
template <class T, bool Gives>
struct FutureArgument {
    std::shared_ptr<FutureValue<T>> state;
    const T& get() const {
        state->check();
        return *state->value;
    }
};
template <class T>
struct FutureArgument<T, false> {
    std::shared_ptr<FutureValue<T>> state;
};

}  // namespace detail

template <class T>
void Future<T>::refuse_empty() {
    detail::refuse_empty_future();
}

/// The result of an earlier task. The function gets const T&. Where that task failed this one is cancelled.
/// Throws kInvalidArgument, as after(), where valid() is false.
template <class T>
[[nodiscard]] auto in(const Future<T>& future) {
    static_assert(!std::is_void_v<T>, "a Future<void> has no value: name it with after()");
    return detail::FutureArgument<T, true>{future.shared()};
}
/// Follows the future's task. The function gets nothing of it.
template <class T>
[[nodiscard]] auto after(const Future<T>& future) {
    return detail::FutureArgument<T, false>{future.shared()};
}

}  // namespace heddle
