// A graph in Graphviz' language, written as it is or as the picture that Graphviz makes of it.
#pragma once

#include <string>

namespace heddle::tool {

/// The name has to end in .dot or .svg, and for the latter Graphviz has to be there. Throws UsageError, or
/// kUnavailable: before hours of work rather than after them.
void check_graph_file(const std::string& path);

/// Throws kSystem where it cannot be written, or Graphviz' program fails.
void write_graph_file(const std::string& path, const std::string& dot);

}  // namespace heddle::tool
