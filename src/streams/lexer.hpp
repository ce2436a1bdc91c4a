// Lexer: the tokens of an S-Net program (S-Net language report; keywords are identifiers here, the parser
// knows them).
//
// For one thread; refers to its Source, which must outlive it.
#pragma once

#include <string>
#include <string_view>

#include "streams/source.hpp"

namespace heddle::streams {

enum class TokenKind { kIdentifier, kInteger, kSymbol, kEnd };

struct Token {
    TokenKind kind = TokenKind::kEnd;
    std::string_view text;  ///< in the source
    Place place;

    [[nodiscard]] bool is(std::string_view symbol_or_word) const {
        return kind != TokenKind::kInteger && kind != TokenKind::kEnd && text == symbol_or_word;
    }
};

class Lexer {
  public:
    explicit Lexer(const Source& source) : source_(source), text_(source.text()) { advance(); }

    [[nodiscard]] const Token& now() const { return now_; }
    /// The token after it.
    [[nodiscard]] Token peek() const;
    /// Returns the present one. Throws kBadInput where what follows is no token.
    Token take();
    /// Cuts the present token to its first `size` characters; the others are tokens of their own. For "<t>=",
    /// whose last two characters are read as one token.
    void split(size_t size);
    /// The text from behind the present token up to `end`, which is passed over; the place is its first byte.
    /// Throws kBadInput where `end` does not come.
    Token take_until(std::string_view end);

  private:
    [[nodiscard]] Place place(size_t offset) const { return {&source_, static_cast<uint32_t>(offset)}; }
    /// As people can read it.
    [[nodiscard]] std::string character(size_t at) const;
    void advance();
    void skip_blanks();

    const Source& source_;
    std::string_view text_;
    size_t at_ = 0;  ///< behind the present token
    Token now_;
};

}  // namespace heddle::streams
