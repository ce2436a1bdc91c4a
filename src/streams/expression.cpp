#include "streams/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstdint>

namespace heddle::streams {
namespace {

int64_t divided(int64_t a, int64_t b, const char* what) {
    if (b == 0) throw Error(ErrorCode::kBadInput, fmt::format("{} {} by zero", a, what));
    return what[0] == 'd' ? a / b : a % b;
}

int64_t wide(const Expression& e, const std::function<int(Label)>& tag_value) {
    const auto a = [&] { return static_cast<int64_t>(evaluate(*e.a, tag_value)); };
    const auto b = [&] { return static_cast<int64_t>(evaluate(*e.b, tag_value)); };
    switch (e.op) {
        case Operator::kInteger:
            return e.value;
        case Operator::kTag:
            return tag_value(e.tag);
        case Operator::kNegate:
            return -a();
        case Operator::kNot:
            return a() == 0;
        case Operator::kAbs:
            return std::abs(a());
        case Operator::kAdd:
            return a() + b();
        case Operator::kSubtract:
            return a() - b();
        case Operator::kMultiply:
            return a() * b();
        case Operator::kDivide:
            return divided(a(), b(), "divided");
        case Operator::kRemainder:
            return divided(a(), b(), "modulo a division");
        case Operator::kMin:
            return std::min(a(), b());
        case Operator::kMax:
            return std::max(a(), b());
        case Operator::kEqual:
            return a() == b();
        case Operator::kNotEqual:
            return a() != b();
        case Operator::kLess:
            return a() < b();
        case Operator::kLessEqual:
            return a() <= b();
        case Operator::kGreater:
            return a() > b();
        case Operator::kGreaterEqual:
            return a() >= b();
        case Operator::kAnd:
            return a() != 0 && b() != 0;
        case Operator::kOr:
            return a() != 0 || b() != 0;
        case Operator::kConditional:
            return a() != 0 ? b() : evaluate(*e.c, tag_value);
    }
    return 0;
}

const char* symbol(Operator op) {
    switch (op) {
        case Operator::kAdd:
            return "+";
        case Operator::kSubtract:
            return "-";
        case Operator::kMultiply:
            return "*";
        case Operator::kDivide:
            return "/";
        case Operator::kRemainder:
            return "%";
        case Operator::kMin:
            return "min";
        case Operator::kMax:
            return "max";
        case Operator::kEqual:
            return "==";
        case Operator::kNotEqual:
            return "!=";
        case Operator::kLess:
            return "<";
        case Operator::kLessEqual:
            return "<=";
        case Operator::kGreater:
            return ">";
        case Operator::kGreaterEqual:
            return ">=";
        case Operator::kAnd:
            return "&&";
        default:
            return "||";
    }
}

}  // namespace

bool Expression::is_truth() const {
    switch (op) {
        case Operator::kNot:
        case Operator::kEqual:
        case Operator::kNotEqual:
        case Operator::kLess:
        case Operator::kLessEqual:
        case Operator::kGreater:
        case Operator::kGreaterEqual:
        case Operator::kAnd:
        case Operator::kOr:
            return true;
        case Operator::kConditional:
            return b->is_truth();
        default:
            return false;
    }
}

int evaluate(const Expression& expression, const std::function<int(Label)>& tag_value) {
    const int64_t value = wide(expression, tag_value);
    if (value < INT_MIN || value > INT_MAX)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("{} is {}, which no tag can hold: they go from {} to {}", text_of(expression),
                                value, INT_MIN, INT_MAX));
    return static_cast<int>(value);
}

std::string text_of(const Expression& e) {
    switch (e.op) {
        case Operator::kInteger:
            return std::to_string(e.value);
        case Operator::kTag:
            return fmt::format("{}{}", e.tag.kind() == LabelKind::kBindingTag ? "#" : "", e.tag.name());
        case Operator::kNegate:
            return fmt::format("-{}", text_of(*e.a));
        case Operator::kNot:
            return fmt::format("!{}", text_of(*e.a));
        case Operator::kAbs:
            return fmt::format("abs {}", text_of(*e.a));
        case Operator::kConditional:
            return fmt::format("({} ? {} : {})", text_of(*e.a), text_of(*e.b), text_of(*e.c));
        default:
            return fmt::format("({} {} {})", text_of(*e.a), symbol(e.op), text_of(*e.b));
    }
}

}  // namespace heddle::streams
