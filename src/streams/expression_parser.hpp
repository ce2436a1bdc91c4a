// ExpressionParser: the tag expressions of a program. A '>' that an operand follows compares; another one
// ends the expression.
#pragma once

#include <memory>

#include "streams/expression.hpp"
#include "streams/lexer.hpp"

namespace heddle::streams {

class ExpressionParser {
  public:
    ExpressionParser(const Source& source, Lexer& lexer) : source_(source), lexer_(lexer) {}

    /// Throws kBadInput where there is none, or where it is a truth value and an integer is wanted.
    [[nodiscard]] std::unique_ptr<Expression> integer();
    /// The reverse.
    [[nodiscard]] std::unique_ptr<Expression> truth();

  private:
    using Pointer = std::unique_ptr<Expression>;
    Pointer conditional();
    Pointer binary(size_t level);
    Pointer unary();
    Pointer operand();
    /// `negative`: of the number behind a '-'.
    [[nodiscard]] int number(const Token& token, bool negative) const;
    Pointer make(Operator op, Place place, Pointer a, Pointer b = nullptr, Pointer c = nullptr);
    [[nodiscard]] bool begins_operand(const Token& token) const;
    void want(const Expression& e, bool truth) const;
    [[noreturn]] void fail_as_nested(Place place) const;

    static constexpr int kMostNested = 200;
    const Source& source_;
    Lexer& lexer_;
    int depth_ = 0;
};

}  // namespace heddle::streams
