// Text that came from outside (a program's name) made safe for each format.
//
// Pure functions. Whatever the bytes are, the result is valid UTF-8, has no character that the format forbids
// and cannot end the string, the line or the tag that it stands in.
#pragma once

#include <string>
#include <string_view>

namespace heddle::trace {

/// Invalid bytes become U+FFFD; everything else is kept. At most `max_bytes` long, cut between characters.
[[nodiscard]] std::string valid_utf8(std::string_view text, size_t max_bytes = std::string_view::npos);

/// One line that a terminal shows as it is: control characters become their pictures (U+2400...), those that
/// change the direction of text U+FFFD.
[[nodiscard]] std::string printable(std::string_view text);

/// A JSON string with its quotes; control characters survive as escapes.
[[nodiscard]] std::string json_string(std::string_view text, size_t max_bytes = std::string_view::npos);
/// For XML text and attribute values.
[[nodiscard]] std::string xml_text(std::string_view text);
/// A Paje string with its quotes. Paje has no escapes: a quotation mark becomes an apostrophe.
[[nodiscard]] std::string paje_string(std::string_view text);

/// Columns of a terminal that a printable text takes.
[[nodiscard]] size_t columns_of(std::string_view printable_text);
/// The text cut to that many columns, with "…" (or "~" in ASCII) at the cut.
[[nodiscard]] std::string shortened(std::string_view printable_text, size_t columns, bool ascii = false);
/// The text with '?' for each character that is not ASCII, and 'u' for the µ of units.
[[nodiscard]] std::string ascii_only(std::string_view printable_text);

}  // namespace heddle::trace
