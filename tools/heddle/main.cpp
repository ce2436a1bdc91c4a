// heddle: one command, a file a subcommand. Exit codes: 0 done, 1 failed, 2 usage, 69 service absent.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/settings.hpp"
#include "base/standard_streams.hpp"
#include "command.hpp"
#include "heddle/error.hpp"

namespace {

std::string variables() {
    std::string text = "Environment:\n";
    for (const heddle::Setting& setting : heddle::settings())
        text += fmt::format("  {:<28}{}\n", setting.name, setting.values);
    return text + "The manual, heddle(1), tells what they mean.";
}

/// The words of a command that is none, where that is what is wrong; else nothing.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
    const CLI::App* known = &app;
    std::string words;
    int next = 1;
    for (; !known->get_subcommands().empty() && next < argc; ++next) {
        known = known->get_subcommands().front();
        if (known->get_name() != argv[next]) return "";
        words += known->get_name() + " ";
    }
    const bool has_commands = !known->get_subcommands([](const CLI::App*) { return true; }).empty();
    return has_commands && next < argc && argv[next][0] != '-' ? words + argv[next] : "";
}

/// What was printed may not have arrived: a full disk is no success.
int whole_output(int exit_code) {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
    heddle::to_stderr("heddle: cannot write to stdout: {}\n", std::strerror(errno));
    return exit_code == heddle::tool::kDone ? heddle::tool::kFailed : exit_code;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace heddle::tool;
    using heddle::to_stderr;
    heddle::fill_standard_streams();
    // Where it is ignored, as in what some programs start, nobody learns how a child ended.
    std::signal(SIGCHLD, SIG_DFL);
    for (const std::string& line : heddle::untold_settings()) to_stderr("heddle: {}\n", line);

    CLI::App app{"heddle: parallel programs and runtimes share cores, devices and data", "heddle"};
    app.set_version_flag("--version", HEDDLE_VERSION);
    app.require_subcommand(0, 1);
    // Not by a count that must be: what is wrong on the line is told first.
    app.callback([&app] {
        if (app.get_subcommands().empty()) throw CLI::RequiredError("A subcommand");
    });
    app.failure_message(CLI::FailureMessage::simple);
    app.footer(variables());
    add_bench(app);
    add_demo(app);
    add_info(app);
    add_memory(app);
    add_trace(app);
    add_run(app);
    add_snet(app);
    add_solve(app);
    add_eigen(app);
    add_status(app);
    add_top(app);
    char** const dashes =
        std::find_if(argv, argv + argc, [](const char* word) { return std::strcmp(word, "--") == 0; });
    if (dashes != argv + argc) words_behind_dashes.assign(dashes + 1, argv + argc);
    try {
        app.parse(argc, argv);
        return whole_output(kDone);
    } catch (const CLI::Success& success) {
        return whole_output(app.exit(success));
    } catch (const CLI::RuntimeError& ended) {
        return whole_output(ended.get_exit_code());  // of a command that was run
    } catch (const CLI::ParseError& error) {
        const std::string unknown = unknown_command(app, argc, argv);
        to_stderr("heddle: {}; heddle --help tells what there is\n",
                  unknown.empty() ? error.what() : fmt::format("there is no command '{}'", unknown));
        return kUsage;
    } catch (const UsageError& error) {
        to_stderr("heddle: {}\n", error.what());
        return kUsage;
    } catch (const ServiceAbsent& error) {
        to_stderr("heddle: {}\n", error.what());
        return kServiceAbsent;
    } catch (const std::exception& error) {
        to_stderr("heddle: {}\n", error.what());
        return kFailed;
    }
}
