// PatternParser: what programs say of single records: labels, patterns, filters, synchrocells; and the words
// that a parser asks its tokens with.
#pragma once

#include "streams/expression_parser.hpp"
#include "streams/lexer.hpp"
#include "streams/syntax.hpp"

namespace heddle::streams {

class PatternParser {
  public:
    explicit PatternParser(const Source& source)
        : source_(source), lexer_(source), expressions_(source, lexer_) {}
    PatternParser(const PatternParser&) = delete;
    PatternParser& operator=(const PatternParser&) = delete;

  protected:
    [[nodiscard]] const Source& source() const { return source_; }
    [[nodiscard]] Lexer& lexer() { return lexer_; }
    [[nodiscard]] const Token& now() const { return lexer_.now(); }
    [[nodiscard]] bool at(std::string_view what) const { return now().is(what); }
    [[noreturn]] void fail(Place place, std::string_view message) const { source_.fail(place, message); }
    [[noreturn]] void fail_as_twice(Place place, Label label) const;
    /// True: it was there, and is passed.
    bool skip(std::string_view what);
    /// Its place. Throws kBadInput where it is not there; `why` ends the message.
    Place expect(std::string_view what, std::string_view why);
    /// Throws kBadInput where there is none, or a word of S-Net; `of` says of what.
    Token name(std::string_view of);

    /// Labels between two brackets.
    Variant tuple(std::string_view open, std::string_view close, bool may_pass);
    Label tag_name();
    Pattern pattern();
    Topology sync();
    Topology filter();

  private:
    Entry entry(bool may_pass);
    std::unique_ptr<Expression> guard();
    std::vector<OutputRecord> action(const Variant& given);
    Assignment assignment(const Variant& given);
    void check_tags(const Expression& e, const Variant& given) const;

    const Source& source_;
    Lexer lexer_;
    ExpressionParser expressions_;
};

}  // namespace heddle::streams
