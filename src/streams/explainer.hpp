// Explainer: where a record goes, part by part, and why: nothing runs.
//
// Tags whose values are not known (those that boxes make, and those given without one) make conditions that
// may hold or not: then both ways are told. Boxes send each variant that they declare.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "streams/typing.hpp"

namespace heddle::streams {

/// A record as far as it is known: its labels, and the values of tags.
using KnownRecord = std::map<Label, std::optional<int>>;

/// "{a, <t = 3>, <u>, <#b = 1>}", as S-Net writes labels. Throws kBadInput, with a caret, for what is none.
[[nodiscard]] KnownRecord read_known_record(std::string_view text);
[[nodiscard]] std::string text_of(const KnownRecord& record);

/// Lines for people: file:line:column and what happens there; what comes of one of several records or ways is
/// indented. The way is told for some hundred steps at most.
[[nodiscard]] std::string explain(const Program& program, const Typing& typing, const KnownRecord& record);

}  // namespace heddle::streams
