// What parts of a program look like in S-Net's own words: for messages, graphs and explanations.
#pragma once

#include <string>

#include "streams/syntax.hpp"

namespace heddle::streams {

/// "{a, <t>}".
[[nodiscard]] std::string text_of(const Variant& variant);
/// "{a, <t>} if <t > 0>".
[[nodiscard]] std::string text_of(const Pattern& pattern);
/// "{a}, {b} if <...>": of a star, a feedback or a synchrocell.
[[nodiscard]] std::string text_of(const std::vector<Pattern>& patterns);
/// "[{<a>} -> {<b = a>}]".
[[nodiscard]] std::string text_of_filter(const Topology& filter);
/// "(a, <t>) -> (b) | (c)".
[[nodiscard]] std::string text_of_signature(const BoxDefinition& box);

}  // namespace heddle::streams
