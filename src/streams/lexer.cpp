#include "streams/lexer.hpp"

#include <fmt/format.h>

#include <array>

#include "streams/record_streams.hpp"

namespace heddle::streams {
namespace {

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// Decimal, or as C writes hexadecimal ones.
bool is_number(std::string_view text) {
    const bool hexadecimal = text.starts_with("0x") && text.size() > 2;
    return text.substr(hexadecimal ? 2 : 0)
               .find_first_not_of(hexadecimal ? "0123456789abcdefABCDEF" : "0123456789") ==
           std::string_view::npos;
}

// The longest first among those that begin alike.
constexpr std::array<std::string_view, 44> kSymbols{
    "<<<", ">>>", "...", "!!@", "..", "||", "**", "!!", "!@", "[|", "|]", "->", "::", "==", "!=",
    "<=",  ">=",  "&&",  "|",   "*",  "!",  "@",  "\\", "[",  "]",  "(",  ")",  "{",  "}",  "<",
    ">",   ",",   ";",   ":",   "=",  "#",  "+",  "-",  "/",  "%",  "?",  "&",  ".",  "\"",
};

}  // namespace

void Lexer::skip_blanks() {
    while (at_ < text_.size()) {
        const char c = text_[at_];
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v') {
            ++at_;
        } else if (text_.substr(at_).starts_with("//")) {
            at_ = std::min(text_.find('\n', at_), text_.size());
        } else if (text_.substr(at_).starts_with("/*")) {
            const size_t end = text_.find("*/", at_ + 2);
            if (end == std::string_view::npos)
                source_.fail(place(at_), "this comment has no end: \"*/\" is missing");
            at_ = end + 2;
        } else {
            return;
        }
    }
}

void Lexer::advance() {
    skip_blanks();
    const size_t begin = at_;
    now_ = {TokenKind::kEnd, text_.substr(begin, 0), place(begin)};
    if (begin == text_.size()) return;
    if (is_letter(text_[begin]) || is_digit(text_[begin])) {
        now_.kind = is_digit(text_[begin]) ? TokenKind::kInteger : TokenKind::kIdentifier;
        while (at_ < text_.size() && (is_digit(text_[at_]) || is_letter(text_[at_]))) ++at_;
        now_.text = text_.substr(begin, at_ - begin);
        if (now_.kind == TokenKind::kInteger && !is_number(now_.text))
            source_.fail(now_.place, fmt::format("\"{}\" is neither a number nor a name: names begin with a "
                                                 "letter",
                                                 now_.text));
        return;
    }
    for (const std::string_view symbol : kSymbols) {
        if (!text_.substr(begin).starts_with(symbol)) continue;
        at_ = begin + symbol.size();
        now_.kind = TokenKind::kSymbol;
        now_.text = text_.substr(begin, symbol.size());
        return;
    }
    source_.fail(now_.place, fmt::format("the character {} means nothing in S-Net", character(begin)));
}

std::string Lexer::character(size_t at) const {
    const auto byte = static_cast<unsigned char>(text_[at]);
    for (size_t size = 1; size <= 4; ++size)
        if (byte >= 0x20 && byte != 0x7f && is_utf8(text_.substr(at, size)))
            return fmt::format("'{}'", text_.substr(at, size));
    return fmt::format("with the number {}", byte);
}

Token Lexer::peek() const {
    Lexer next = *this;
    next.advance();
    return next.now_;
}

Token Lexer::take() {
    const Token taken = now_;
    advance();
    return taken;
}

void Lexer::split(size_t size) {
    at_ = now_.place.offset + size;
    now_.text = now_.text.substr(0, size);
}

Token Lexer::take_until(std::string_view end) {
    const size_t begin = at_, found = text_.find(end, begin);
    if (found == std::string_view::npos)
        source_.fail(now_.place, fmt::format("what begins here has no end: \"{}\" is missing", end));
    at_ = found + end.size();
    advance();
    return {TokenKind::kSymbol, text_.substr(begin, found - begin), place(begin)};
}

}  // namespace heddle::streams
