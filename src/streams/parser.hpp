// parse: the tree of an S-Net program.
//
// Grammar and precedence: S-Net language report 2.0, and what its compiler accepts (docs/STREAMS.md).
#pragma once

#include "streams/syntax.hpp"

namespace heddle::streams {

/// Throws kBadInput with file, line, column and a caret: for what is no S-Net, a name that was not defined
/// before, one that is defined twice, an expression that mixes truth values and integers or names tags that
/// its pattern lacks.
[[nodiscard]] std::unique_ptr<Program> parse(Source source);

}  // namespace heddle::streams
