// heddle: one command, a file a subcommand. Exit codes: 0 done, 1 failed, 2 usage, 69 service absent.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/settings.hpp"
#include "command.hpp"
#include "heddle/error.hpp"

namespace {

std::string variables() {
    std::string text = "Environment:\n";
    for (const heddle::Setting& setting : heddle::settings())
        text += fmt::format("  {:<28}{}\n", setting.name, setting.values);
    return text + "The manual, heddle(1), tells what they mean.";
}

}  // namespace

int main(int argc, char** argv) {
    using namespace heddle::tool;
    for (const std::string& line : heddle::unknown_settings()) fmt::print(stderr, "heddle: {}\n", line);

    CLI::App app{"heddle: parallel programs and runtimes share cores, devices and data", "heddle"};
    app.set_version_flag("--version", HEDDLE_VERSION);
    app.require_subcommand(1);
    app.failure_message(CLI::FailureMessage::simple);
    app.footer(variables());
    add_bench(app);
    add_demo(app);
    add_info(app);
    add_trace(app);
    add_run(app);
    add_status(app);
    add_top(app);
    try {
        app.parse(argc, argv);
        return kDone;
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::RuntimeError& ended) {
        return ended.get_exit_code();  // of a command that was run
    } catch (const CLI::ParseError& error) {
        const bool names_a_command = argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty();
        if (names_a_command)
            fmt::print(stderr, "heddle: there is no command '{}'\n", argv[1]);
        else
            fmt::print(stderr, "heddle: {}\n", error.what());
        fmt::print(stderr, "Run heddle --help for what there is.\n");
        return kUsage;
    } catch (const UsageError& error) {
        fmt::print(stderr, "heddle: {}\n", error.what());
        return kUsage;
    } catch (const ServiceAbsent& error) {
        fmt::print(stderr, "heddle: {}\n", error.what());
        return kServiceAbsent;
    } catch (const std::exception& error) {
        fmt::print(stderr, "heddle: {}\n", error.what());
        return kFailed;
    }
}
