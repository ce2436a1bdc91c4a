// A program's network as a picture: what `heddle snet graph` prints.
#pragma once

#include <string>

#include "streams/typing.hpp"

namespace heddle::streams {

/// In Graphviz' language. Nets, stars and splits are frames; a net inside of itself is a node.
[[nodiscard]] std::string dot_of(const Program& program, const Typing& typing);
/// A line a part, those inside of it indented.
[[nodiscard]] std::string outline_of(const Program& program, const Typing& typing);

}  // namespace heddle::streams
