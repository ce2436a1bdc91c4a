// What tasks are given: in(), out(), inout(), commute(), redux(), value() and scratch(); in() and after() of
// a Future are with that (heddle/future.hpp).
//
// Each makes an argument of Sequence::insert(), which says what the task's function gets, and orders the task
// by the data it names. An argument refers to its data and is for one insertion; it does nothing by itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "heddle/data.hpp"
#include "heddle/export.hpp"
#include "heddle/future.hpp"
#include "heddle/parameters.hpp"

namespace heddle {

enum class AccessMode : uint8_t { kIn, kOut, kInOut, kCommute, kRedux };

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

/// Throws kLimit.
[[noreturn]] HEDDLE_API void refuse_scratch(size_t size, size_t element_bytes);
/// Not initialised.
template <class T>
std::unique_ptr<T[]> scratch_memory(size_t size) {
    try {
        return std::make_unique_for_overwrite<T[]>(size);
    } catch (const std::bad_alloc&) {
        refuse_scratch(size, sizeof(T));
    }
}

template <class T>
struct ScratchArgument {
    size_t size;
    struct Memory {
        std::unique_ptr<T[]> elements;
        size_t size;
        operator std::span<T>() const { return {elements.get(), size}; }
    };
    Memory get() const { return {scratch_memory<T>(size), size}; }
};

template <class A>
inline constexpr bool kIsFuture = false;
template <class T, bool Gives>
inline constexpr bool kIsFuture<FutureArgument<T, Gives>> = true;

/// It names data, by which the task is ordered.
template <class A>
inline constexpr bool kIsData = kIsFuture<A>;
template <class D, AccessMode M>
inline constexpr bool kIsData<DataArgument<D, M>> = true;
template <class D, class Combine>
inline constexpr bool kIsData<ReduxArgument<D, Combine>> = true;

template <class A>
inline constexpr bool kIsArgument = kIsData<A>;
template <class T>
inline constexpr bool kIsArgument<ValueArgument<T>> = true;
template <class T>
inline constexpr bool kIsArgument<ScratchArgument<T>> = true;

/// It says nothing of how the task runs, but who comes after whom.
template <class A>
inline constexpr bool kIsPlainArgument = !kIsData<A>;
template <class D, AccessMode M>
inline constexpr bool kIsPlainArgument<DataArgument<D, M>> = M <= AccessMode::kInOut;

/// Does the function get something for it?
template <class A>
inline constexpr bool kGives = true;
template <class T>
inline constexpr bool kGives<FutureArgument<T, false>> = false;

/// Which of the arguments the function gets something for.
template <class... Arguments>
constexpr auto giving() {
    std::array<size_t, (size_t{kGives<Arguments>} + ... + 0)> result{};
    constexpr bool kOfEach[] = {kGives<Arguments>..., false};
    for (size_t i = 0, found = 0; i < sizeof...(Arguments); ++i)
        if (kOfEach[i]) result[found++] = i;
    return result;
}
template <class... Arguments>
inline constexpr auto kGiving = giving<Arguments...>();

/// As std::tuple, but copied as bytes where each of them is: made as {{first}, {second}, ...}.
template <class Indices, class... Arguments>
struct NumberedArguments;
template <class... Arguments>
using ArgumentPack = NumberedArguments<std::index_sequence_for<Arguments...>, Arguments...>;
template <size_t I, class A>
struct NumberedArgument {
    A argument;
};
template <size_t... I, class... Arguments>
struct NumberedArguments<std::index_sequence<I...>, Arguments...> : NumberedArgument<I, Arguments>... {
    template <size_t Which>
    [[nodiscard]] auto& at() {
        return pick<Which>(*this);
    }

  private:
    template <size_t Which, class A>
    static A& pick(NumberedArgument<Which, A>& numbered) {
        return numbered.argument;
    }
};

template <class Function, class Indices, class... Arguments>
decltype(auto) call(Function& function, NumberedArguments<Indices, Arguments...>& arguments) {
    return [&]<size_t... I>(std::index_sequence<I...>)->decltype(auto) {
        return function(arguments.template at<kGiving<Arguments...>[I]>().get()...);
    }
    (std::make_index_sequence<kGiving<Arguments...>.size()>{});
}

template <class Function, class... Arguments>
constexpr bool can_call() {
    return []<size_t... I>(std::index_sequence<I...>) {
        return std::is_invocable_v<Function&, decltype(std::declval<ArgumentPack<Arguments...>&>()
                                                           .template at<kGiving<Arguments...>[I]>()
                                                           .get())...>;
    }
    (std::make_index_sequence<kGiving<Arguments...>.size()>{});
}

/// The function gets a reference for it, through which it writes.
template <class A>
inline constexpr bool kWritesByReference = false;
template <class D, AccessMode M>
inline constexpr bool kWritesByReference<DataArgument<D, M>> =
    M != AccessMode::kIn&& std::is_lvalue_reference_v<typename D::View>;
template <class D, class Combine>
inline constexpr bool kWritesByReference<ReduxArgument<D, Combine>> =
    std::is_lvalue_reference_v<typename D::View>;

/// It takes a copy of what it is to write, as far as its type says.
template <class Function, class... Arguments>
constexpr bool writes_a_copy() {
    if constexpr (PlainFunction<Function>) {
        using Types = typename Parameters<Function>::Tuple;
        constexpr bool kWrites[] = {kWritesByReference<Arguments>..., false};
        return [&]<size_t... I>(std::index_sequence<I...>) {
            return (
                (kWrites[kGiving<Arguments...>[I]] && !std::is_reference_v<std::tuple_element_t<I, Types>>) ||
                ...);
        }
        (std::make_index_sequence<std::min(kGiving<Arguments...>.size(), std::tuple_size_v<Types>)>{});
    }
    return false;
}

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
/// Memory for `size` elements while the task runs, not initialised. The function gets std::span<T>. The task
/// fails with kLimit where there is none.
template <class T>
[[nodiscard]] auto scratch(size_t size) {
    return detail::ScratchArgument<T>{size};
}

}  // namespace heddle
