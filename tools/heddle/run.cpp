// heddle run and heddle start: listed here for --help; the launcher (tools/launcher) does them and never
// starts this tool for them.
#include <CLI/CLI.hpp>

#include "command.hpp"

namespace heddle::tool {

namespace {

void add_of_launcher(CLI::App& app, const std::string& name, const std::string& does) {
    CLI::App* command = app.add_subcommand(name, does);
    command->prefix_command();
    command->callback(
        [name] { throw UsageError(name + " is the launcher's: start heddle, not heddle-tool"); });
}

}  // namespace

void add_run(CLI::App& app) {
    add_of_launcher(app, "run", "Run an unmodified program under management");
    add_of_launcher(app, "start", "Start the arbiter where none listens");
}

}  // namespace heddle::tool
