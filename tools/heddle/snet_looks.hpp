// The subcommands of `heddle snet` that look at a program and run nothing: check, graph, explain.
#pragma once

namespace CLI {
class App;
}

namespace heddle::tool {

void add_snet_looks(CLI::App& snet);

}  // namespace heddle::tool
