// heddle run: listed here for --help; the launcher (tools/launcher) does it and never starts this tool for
// it.
#include "command.hpp"

namespace heddle::tool {

void add_run(CLI::App& app) {
    CLI::App* command = app.add_subcommand("run", "Run an unmodified program under management");
    command->prefix_command();
    command->callback([] { throw UsageError("run is the launcher's: start heddle, not heddle-tool"); });
}

}  // namespace heddle::tool
