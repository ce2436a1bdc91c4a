// What a C++ function needs to be a box of a network (heddle/streams.hpp).
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "heddle/parameters.hpp"
#include "heddle/streams_record.hpp"

namespace heddle::snet {

/// A field's value, or a tag's.
using BoxValue = std::variant<FieldPointer, int>;

/// One call of a box, for the thread or task that it runs in.
class HEDDLE_API BoxCall {
  public:
    virtual ~BoxCall();
    /// In the order of the signature. What is moved out of it is the box's alone where no other record has
    /// it.
    [[nodiscard]] virtual std::span<BoxValue> arguments() = 0;
    /// Sends a record of the given variant (the first is 1) with the values in the order of the signature,
    /// and what the box's input had besides. Of a short call they may go on when it is over: a call must not
    /// wait for what becomes of them. May pause the task while what follows is full. Throws kBadInput for a
    /// variant that the box has not declared, or values that do not fit it.
    void emit(size_t variant, std::span<const BoxValue> values) {
        std::vector<BoxValue> copies(values.begin(), values.end());
        emit_moved(variant, copies);
    }
    /// The same. Moves the values out.
    virtual void emit_moved(size_t variant, std::span<BoxValue> values) = 0;
    /// The same, as the last thing that the call does: cheaper. Moves the values out.
    virtual void emit_last(size_t variant, std::span<BoxValue> values) = 0;
};

/// The labels that a box takes, in the order of its function's arguments.
template <class... Labels>
struct In {};
/// Those of a record that it sends, in the order of their values.
template <class... Labels>
struct Out {};

namespace detail {

template <class Label, class Value>
BoxValue box_value(Value&& value) {
    if constexpr (Label::kKind == LabelKind::kField)
        return make_field<typename Label::Type>(typename Label::Type(std::forward<Value>(value)));
    else
        return static_cast<int>(value);
}

template <class Out, class... Outs>
constexpr size_t variant_of() {
    size_t variant = 0, at = 0;
    ((++at, variant = variant == 0 && std::is_same_v<Out, Outs> ? at : variant), ...);
    return variant;
}

template <class... Labels, class... Values>
void emit(BoxCall& call, size_t variant, Out<Labels...> /*of*/, Values&&... values) {
    static_assert(sizeof...(Labels) == sizeof...(Values), "a record is sent with a value for each label");
    std::array<BoxValue, sizeof...(Labels)> all{box_value<Labels>(std::forward<Values>(values))...};
    call.emit_moved(variant, all);
}

}  // namespace detail

/// The first argument of a box's function that sends any number of records.
template <class First, class... Others>
class Emit {
  public:
    explicit Emit(BoxCall& call) : call_(&call) {}
    /// A record as First says. May pause the task while what follows is full.
    template <class... Values>
    requires(sizeof...(Others) == 0) void operator()(Values&&... values) {
        detail::emit(*call_, 1, First(), std::forward<Values>(values)...);
    }
    /// A record as this one of them says.
    template <class... Labels, class... Values>
    void operator()(Out<Labels...> as, Values&&... values) {
        constexpr size_t kVariant = detail::variant_of<Out<Labels...>, First, Others...>();
        static_assert(kVariant != 0, "the box has not declared such a record");
        detail::emit(*call_, kVariant, as, std::forward<Values>(values)...);
    }

  private:
    BoxCall* call_;
};

namespace detail {

using heddle::detail::Parameters;
using heddle::detail::PlainFunction;

/// What a label's value is given as to a parameter of this type; whether it was moved out.
template <class Label, class Parameter>
decltype(auto) argument(BoxValue& value, [[maybe_unused]] bool& moved) {
    if constexpr (Label::kKind != LabelKind::kField) {
        return std::get<int>(value);
    } else {
        using T = typename Label::Type;
        FieldPointer& field = std::get<FieldPointer>(value);
        if constexpr (std::is_same_v<std::decay_t<Parameter>, std::shared_ptr<const T>>) {
            const Typed<T>& held = typed<T>(field, Label::name());
            return std::shared_ptr<const T>(field, &held.value);
        } else if constexpr (std::is_same_v<Parameter, T&&>) {
            return lent<T>(field, Label::name());
        } else if constexpr (std::is_same_v<Parameter, T>) {
            (void)typed<T>(field, Label::name());
            moved = has_sole_owner(field);
            return taken<T>(std::move(field), Label::name());
        } else if constexpr (std::is_arithmetic_v<T> && std::is_arithmetic_v<Parameter>) {
            return static_cast<Parameter>(typed<T>(field, Label::name()).value);
        } else {
            return static_cast<const T&>(typed<T>(field, Label::name()).value);
        }
    }
}

/// A function that is called with the values of In, perhaps behind an Emit.
template <class Function, class Input, class... Outputs>
struct BoxClosure;
template <class Function, class... Inputs, class... Outputs>
struct BoxClosure<Function, In<Inputs...>, Outputs...> {
    Function function;

    void operator()(BoxCall& call) const { run(call, std::index_sequence_for<Inputs...>()); }

  private:
    using Emitter = Emit<Outputs...>;
    static constexpr bool emits() {
        if constexpr (PlainFunction<Function>) {
            constexpr size_t kCount = std::tuple_size_v<typename Parameters<Function>::Tuple>;
            static_assert(kCount == sizeof...(Inputs) || kCount == sizeof...(Inputs) + 1,
                          "a box's function takes a value for each label of In, perhaps behind an Emit");
            return kCount == sizeof...(Inputs) + 1;
        } else {
            return std::is_invocable_v<const Function&, Emitter&, const typename Inputs::Type&...> ||
                   std::is_invocable_v<const Function&, Emitter&, typename Inputs::Type...>;
        }
    }

    /// By which a generic function is given its values.
    static constexpr bool takes_references() {
        if constexpr (emits())
            return std::is_invocable_v<const Function&, Emitter&, const typename Inputs::Type&...>;
        else
            return std::is_invocable_v<const Function&, const typename Inputs::Type&...>;
    }
    template <size_t i>
    static auto parameter_at() {
        if constexpr (PlainFunction<Function>)
            return std::type_identity<
                std::tuple_element_t<i + (emits() ? 1 : 0), typename Parameters<Function>::Tuple>>();
        else if constexpr (takes_references())
            return std::type_identity<const void*>();  // none that argument() knows: a reference
        else
            return std::type_identity<std::tuple_element_t<i, std::tuple<typename Inputs::Type...>>>();
    }
    template <size_t i>
    using ParameterAt = typename decltype(parameter_at<i>())::type;

    /// Values that were moved out are not those of the record any more, should the call fail.
    struct Spent {
        std::span<BoxValue> values;
        std::array<bool, sizeof...(Inputs)> moved{};
        bool done = false;
        ~Spent() {
            if (done) return;
            for (size_t i = 0; i < moved.size(); ++i)
                if (moved[i]) values[i] = FieldPointer();
        }
    };

    template <size_t... i>
    void run(BoxCall& call, std::index_sequence<i...> /*of*/) const {
        [[maybe_unused]] const std::span<BoxValue> values = call.arguments();
        [[maybe_unused]] Spent spent{.values = values};
        if constexpr (emits()) {
            Emitter emit(call);
            function(emit, argument<Inputs, ParameterAt<i>>(values[i], spent.moved[i])...);
            spent.done = true;
        } else {
            using Result = decltype(function(argument<Inputs, ParameterAt<i>>(values[i], spent.moved[i])...));
            if constexpr (std::is_void_v<Result>) {
                function(argument<Inputs, ParameterAt<i>>(values[i], spent.moved[i])...);
                spent.done = true;
            } else {
                static_assert(sizeof...(Outputs) == 1, "a box that returns its record sends one kind");
                decltype(auto) result =
                    function(argument<Inputs, ParameterAt<i>>(values[i], spent.moved[i])...);
                spent.done = true;
                send(call, values, std::forward<Result>(result), Outputs()...);
            }
        }
    }

    /// The first argument that holds such a value.
    template <class T>
    static constexpr size_t place_for() {
        size_t at = 0, found = sizeof...(Inputs);
        ((found = found == sizeof...(Inputs) && Inputs::kKind == LabelKind::kField &&
                          std::is_same_v<typename Inputs::Type, T>
                      ? at
                      : found,
          ++at),
         ...);
        return found;
    }
    /// What the function returned. One value of a kind that it was given is put in the place of that one.
    template <class Label, class Value>
    static BoxValue returned(std::span<BoxValue> values, Value&& value) {
        using T = typename Label::Type;
        if constexpr (Label::kKind == LabelKind::kField && std::is_same_v<Value, T> &&
                      std::is_move_assignable_v<T>) {
            if constexpr (constexpr size_t kPlace = place_for<T>(); kPlace < sizeof...(Inputs)) {
                FieldPointer& place = std::get<FieldPointer>(values[kPlace]);
                if (place != nullptr && has_sole_owner(place)) {
                    T& there = static_cast<const Typed<T>&>(*place).value;
                    if (std::addressof(there) != std::addressof(value)) there = std::move(value);
                    return std::move(place);
                }
            }
        }
        return box_value<Label>(std::forward<Value>(value));
    }

    template <class Result, class... Labels>
    static void send(BoxCall& call, std::span<BoxValue> given, Result&& result, Out<Labels...> of) {
        using Plain = std::decay_t<Result>;
        // The value of a field may be an optional itself, and an empty one is a value.
        constexpr bool kIsValue =
            sizeof...(Labels) == 1 && (std::is_same_v<Plain, typename Labels::Type> && ...);
        if constexpr (!kIsValue && requires {
                          result.has_value();
                          *result;
                      }) {
            if (result.has_value()) send(call, given, *std::forward<Result>(result), of);
        } else if constexpr (sizeof...(Labels) == 1 &&
                             (std::is_convertible_v<Plain, typename Labels::Type> && ...)) {
            std::array<BoxValue, 1> values{returned<Labels>(given, std::forward<Result>(result))...};
            call.emit_last(1, values);
        } else {
            static_assert(std::tuple_size_v<Plain> == sizeof...(Labels),
                          "a box returns a value, or a tuple of one for each label");
            std::apply(
                [&](auto&&... each) {
                    std::array<BoxValue, sizeof...(Labels)> values{
                        box_value<Labels>(std::forward<decltype(each)>(each))...};
                    call.emit_last(1, values);
                },
                std::forward<Result>(result));
        }
    }
};

/// A label of a box's, and what it holds there.
struct LabelType {
    std::string label;
    const std::type_info* type;
};

template <class... Labels>
void add_labels(std::string& text, std::vector<LabelType>& types) {
    text += "(";
    [[maybe_unused]] const char* between = "";
    ((text += between, text += Labels::text(), between = ", ",
      types.push_back({Labels::text(), &typeid(typename Labels::Type)})),
     ...);
    text += ")";
}
template <template <class...> class Set, class... Labels>
void add_set(std::string& text, std::vector<LabelType>& types, Set<Labels...> /*of*/) {
    add_labels<Labels...>(text, types);
}

}  // namespace detail
}  // namespace heddle::snet
