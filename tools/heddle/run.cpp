// heddle run and heddle start: listed here for --help; the launcher (tools/launcher) does them, and starts
// this tool only to have HEDDLE_TOPOLOGY checked, which takes hwloc.
#include <CLI/CLI.hpp>

#include "command.hpp"
#include "heddle/machine.hpp"

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
    CLI::App* const check = app.add_subcommand("check-topology", "Whether HEDDLE_TOPOLOGY can be read");
    check->group("");  // of no list: heddle info tells a user more
    check->callback([] { (void)Machine::detect(); });
}

}  // namespace heddle::tool
