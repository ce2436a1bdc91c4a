#include "streams/expression_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace heddle::streams {
namespace {

struct Binary {
    std::string_view symbol;
    Operator op;
    bool of_truth;  ///< its operands
};
/// From the loosest to the tightest.
const std::array<std::vector<Binary>, 7> kLevels{{
    {{"||", Operator::kOr, true}},
    {{"&&", Operator::kAnd, true}},
    {{"==", Operator::kEqual, false}, {"!=", Operator::kNotEqual, false}},
    {{"<", Operator::kLess, false},
     {"<=", Operator::kLessEqual, false},
     {">", Operator::kGreater, false},
     {">=", Operator::kGreaterEqual, false}},
    {{"+", Operator::kAdd, false}, {"-", Operator::kSubtract, false}},
    {{"*", Operator::kMultiply, false}, {"/", Operator::kDivide, false}, {"%", Operator::kRemainder, false}},
    {{"min", Operator::kMin, false}, {"max", Operator::kMax, false}},
}};

constexpr std::array<std::string_view, 5> kWords{"if", "then", "else", "min", "max"};

}  // namespace

std::unique_ptr<Expression> ExpressionParser::integer() {
    Pointer e = conditional();
    want(*e, false);
    return e;
}

std::unique_ptr<Expression> ExpressionParser::truth() {
    Pointer e = conditional();
    want(*e, true);
    return e;
}

void ExpressionParser::want(const Expression& e, bool truth) const {
    if (e.is_truth() == truth) return;
    source_.fail(e.place,
                 truth ? "this is an integer where a truth value is wanted: compare it, as in (a != 0)"
                       : "this is a truth value where an integer is wanted: choose one, as in (c ? 1 : 0)");
}

ExpressionParser::Pointer ExpressionParser::make(Operator op, Place place, Pointer a, Pointer b, Pointer c) {
    auto e = std::make_unique<Expression>();
    for (const Pointer* part : {&a, &b, &c})
        if (*part) e->height = std::max(e->height, (*part)->height + 1);
    if (e->height > kMostNested) fail_as_nested(place);
    e->op = op;
    e->place = place;
    e->a = std::move(a);
    e->b = std::move(b);
    e->c = std::move(c);
    return e;
}

void ExpressionParser::fail_as_nested(Place place) const {
    source_.fail(place, "this expression is nested too deeply, or too long");
}

bool ExpressionParser::begins_operand(const Token& token) const {
    if (token.kind == TokenKind::kInteger) return true;
    if (token.kind == TokenKind::kIdentifier)
        return std::find(kWords.begin(), kWords.end(), token.text) == kWords.end();
    return token.is("(") || token.is("-") || token.is("#") || token.is("!");
}

ExpressionParser::Pointer ExpressionParser::conditional() {
    if (++depth_ > kMostNested) fail_as_nested(lexer_.now().place);
    Pointer condition = binary(0);
    if (lexer_.now().is("?")) {
        const Place place = lexer_.take().place;
        want(*condition, true);
        Pointer yes = conditional();
        if (!lexer_.now().is(":"))
            source_.fail(lexer_.now().place,
                         "the other value of a \"c ? a : b\" is wanted here, after a ':'");
        lexer_.take();
        Pointer no = conditional();
        want(*no, yes->is_truth());
        condition = make(Operator::kConditional, place, std::move(condition), std::move(yes), std::move(no));
    }
    --depth_;
    return condition;
}

ExpressionParser::Pointer ExpressionParser::binary(size_t level) {
    if (level == kLevels.size()) return unary();
    Pointer left = binary(level + 1);
    while (true) {
        const Token& token = lexer_.now();
        const auto found = std::find_if(kLevels[level].begin(), kLevels[level].end(),
                                        [&](const Binary& b) { return token.is(b.symbol); });
        if (found == kLevels[level].end()) return left;
        // The end of what '<' began. No truth is greater than another: a '!' behind it is a replication's.
        if (found->symbol.starts_with(">") && (!begins_operand(lexer_.peek()) || lexer_.peek().is("!")))
            return left;
        const Place place = lexer_.take().place;
        Pointer right = binary(level + 1);
        want(*left, found->of_truth);
        want(*right, found->of_truth);
        left = make(found->op, place, std::move(left), std::move(right));
    }
}

ExpressionParser::Pointer ExpressionParser::unary() {
    if (++depth_ > kMostNested) fail_as_nested(lexer_.now().place);
    Pointer e;
    const Token token = lexer_.now();
    if (token.is("-") && lexer_.peek().kind == TokenKind::kInteger) {
        lexer_.take();
        e = make(Operator::kInteger, token.place, nullptr);
        e->value = number(lexer_.take(), true);
    } else if (token.is("-") || token.is("!") || token.is("abs")) {
        lexer_.take();
        Pointer of = unary();
        want(*of, token.is("!"));
        e = make(token.is("-")   ? Operator::kNegate
                 : token.is("!") ? Operator::kNot
                                 : Operator::kAbs,
                 token.place, std::move(of));
    } else {
        e = operand();
    }
    --depth_;
    return e;
}

ExpressionParser::Pointer ExpressionParser::operand() {
    const Token token = lexer_.now();
    if (!begins_operand(token)) source_.fail(token.place, "a number, a tag or a '(' is wanted here");
    lexer_.take();
    if (token.is("(")) {
        Pointer inner = conditional();
        if (!lexer_.now().is(")")) source_.fail(lexer_.now().place, "a ')' is wanted here");
        lexer_.take();
        return inner;
    }
    auto e = make(Operator::kTag, token.place, nullptr);
    if (token.kind == TokenKind::kInteger) {
        e->op = Operator::kInteger;
        e->value = number(token, false);
    } else if (token.is("#")) {
        if (lexer_.now().kind != TokenKind::kIdentifier)
            source_.fail(lexer_.now().place, "the name of a binding tag is wanted here");
        e->tag = Label(LabelKind::kBindingTag, lexer_.take().text);
    } else {
        e->tag = Label(LabelKind::kTag, token.text);
    }
    return e;
}

int ExpressionParser::number(const Token& token, bool negative) const {
    // As in C: 0x10 is sixteen and 010 is eight.
    const int base = token.text.starts_with("0x") ? 16 : token.text.starts_with("0") ? 8 : 10;
    std::string digits(negative ? "-" : "");
    digits += token.text.substr(base == 16 ? 2 : 0);
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error == std::errc() && end != digits.data() + digits.size())
        source_.fail(token.place, "a number that begins with 0 is octal: its digits go from 0 to 7");
    if (error != std::errc())
        source_.fail(token.place, negative ? "this number is smaller than a tag can be: -2147483648"
                                           : "this number is larger than a tag can be: 2147483647");
    return value;
}

}  // namespace heddle::streams
