// XmlReader: the elements of a text one after the other, without a tree: streams of records have no end, and
// no root.
//
// What S-Net's formats use of XML 1.0: elements, attributes, character data, the five entities and numeric
// references, comments, CDATA and processing instructions (the last are passed over); no DTD. Owns nothing:
// the text is the caller's. For one thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/error.hpp"

namespace heddle::streams {

/// The text ends in the midst of something: more of it would tell.
struct XmlCutOff : Error {
    using Error::Error;
};

class XmlReader {
  public:
    enum class Event { kOpen, kClose, kText, kEnd };

    /// `goes_on`: there is more of the text elsewhere, so that its end is no event but an XmlCutOff.
    explicit XmlReader(std::string_view text, bool goes_on = false) : text_(text), goes_on_(goes_on) {}

    /// An element without content is a kOpen and a kClose. Throws kBadInput, with offset() behind what is
    /// wrong, and XmlCutOff.
    Event next();
    /// Of kOpen and kClose.
    [[nodiscard]] std::string_view name() const { return name_; }
    /// Of kOpen; empty where there is none.
    [[nodiscard]] std::string_view attribute(std::string_view name) const;
    /// Of kText, with entities resolved.
    [[nodiscard]] const std::string& content() const { return content_; }
    [[nodiscard]] size_t offset() const { return at_; }

  private:
    void read_element();
    void read_attributes();
    void skip_blanks();
    std::string_view read_name();
    size_t find(std::string_view what) const;
    [[noreturn]] static void fail(std::string_view message);
    /// XmlCutOff where nothing follows.
    [[noreturn]] void fail_here(std::string_view message) const;
    void append_resolved(std::string& to, std::string_view raw) const;

    std::string_view text_;
    const bool goes_on_;
    size_t at_ = 0;
    std::string_view name_;
    std::string content_;
    std::vector<std::pair<std::string_view, std::string>> attributes_;
    size_t attribute_count_ = 0;
    bool close_follows_ = false;
};

/// Whether it is UTF-8, and XML can have all of it, be it as entities.
[[nodiscard]] bool is_xml_text(std::string_view text) noexcept;
/// With the characters that XML does not allow as text written as entities, as far as it has them.
void append_escaped(std::string& to, std::string_view text);

}  // namespace heddle::streams
