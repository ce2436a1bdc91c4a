// Expression: what S-Net computes from the tags of a record: integers and truth values.
//
// Immutable once parsed; any thread may evaluate. Tags are C's ints; what does not fit is told, as is a
// division by zero. `/` and `%` truncate as C's do.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "streams/labels.hpp"
#include "streams/source.hpp"

namespace heddle::streams {

enum class Operator {
    kInteger,
    kTag,
    kNegate,
    kNot,
    kAbs,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kRemainder,
    kMin,
    kMax,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kAnd,
    kOr,
    kConditional,
};

struct Expression {
    Operator op = Operator::kInteger;
    int value = 0;  ///< of kInteger
    Label tag;      ///< of kTag
    std::unique_ptr<Expression> a, b, c;
    Place place;
    int height = 1;  ///< of the tree, which the parser bounds: who goes through it needs as much stack

    [[nodiscard]] bool is_truth() const;
};

/// Of an integer; truth values are 0 and 1. `tag_value` gives the value of a tag that the expression names.
/// Throws kBadInput for a division by zero and for a result that is no int; the message has no place.
[[nodiscard]] int evaluate(const Expression& expression, const std::function<int(Label)>& tag_value);

/// As S-Net would write it, in as many parentheses as it may need.
[[nodiscard]] std::string text_of(const Expression& expression);

}  // namespace heddle::streams
