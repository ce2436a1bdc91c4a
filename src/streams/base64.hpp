// Base64 as RFC 4648 section 4 has it, with its padding.
#pragma once

#include <string>
#include <string_view>

namespace heddle::streams {

[[nodiscard]] std::string base64_encoded(std::string_view bytes);
/// Throws kBadInput for what is none.
[[nodiscard]] std::string base64_decoded(std::string_view text);

/// The value of a character, 0 to 63; -1: it is none of them.
[[nodiscard]] int base64_value(char c);
[[nodiscard]] char base64_character(unsigned value);

}  // namespace heddle::streams
