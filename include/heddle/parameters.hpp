// Parameters: what a function takes, as its type says it; for the library's own headers.
#pragma once

#include <tuple>

namespace heddle::detail {

/// The types of a function's parameters, as Tuple, where they are not templates or overloaded.
template <class Function>
struct Parameters {};
template <class Function>
requires requires {
    &Function::operator();
}
struct Parameters<Function> : Parameters<decltype(&Function::operator())> {};
template <class Result, class... Types>
struct Parameters<Result (*)(Types...)> {
    using Tuple = std::tuple<Types...>;
};
template <class Result, class... Types>
struct Parameters<Result (*)(Types...) noexcept> : Parameters<Result (*)(Types...)> {};
template <class Class, class Result, class... Types>
struct Parameters<Result (Class::*)(Types...)> : Parameters<Result (*)(Types...)> {};
template <class Class, class Result, class... Types>
struct Parameters<Result (Class::*)(Types...) const> : Parameters<Result (*)(Types...)> {};
template <class Class, class Result, class... Types>
struct Parameters<Result (Class::*)(Types...) noexcept> : Parameters<Result (*)(Types...)> {};
template <class Class, class Result, class... Types>
struct Parameters<Result (Class::*)(Types...) const noexcept> : Parameters<Result (*)(Types...)> {};

template <class Function>
concept PlainFunction = requires {
    typename Parameters<Function>::Tuple;
};

}  // namespace heddle::detail
