// heddle trace: what was recorded, converted for other viewers, drawn, and summed up.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/standard_streams.hpp"
#include "command.hpp"
#include "heddle/error.hpp"
#include "trace/by_task.hpp"
#include "trace/drawing.hpp"
#include "trace/formats.hpp"
#include "trace/reader.hpp"
#include "trace/summary.hpp"

namespace heddle::tool {
namespace {

trace::Timeline load(const std::string& path) {
    const trace::Trace trace = trace::read_file(path);
    for (const std::string& warning : trace.warnings) to_stderr("heddle: {}\n", warning);
    return trace::Timeline(trace);
}

// Lets `write` fill the file, or stdout for "-", and fails where not everything arrived.
void write_to(const std::string& path, const std::function<void(std::ostream&)>& write) {
    std::ofstream file;
    if (path != "-") file.open(path, std::ios::binary);
    std::ostream& out = path == "-" ? std::cout : file;
    if (out) write(out);
    out.flush();
    if (!out)
        throw Error(ErrorCode::kSystem,
                    fmt::format("{}: cannot write: {}", path == "-" ? "stdout" : path, strerror(errno)));
}

void check_not_over(const std::string& input, const std::string& output) {
    std::error_code none;
    if (output != "-" && std::filesystem::equivalent(input, output, none))
        throw UsageError(fmt::format("{} is the trace itself: name another file with --out", output));
}

struct Convert {
    std::string input;
    std::string format;
    std::string output = "-";

    void run() const {
        if (format == "paraver" && output == "-")
            throw UsageError(
                "trace convert --to paraver writes three files: name the first with --out FILE.prv");
        check_not_over(input, output);
        const trace::Timeline timeline = load(input);
        if (format == "chrome")
            write_to(output, [&](std::ostream& out) { write_chrome(timeline, out); });
        else if (format == "paje")
            write_to(output, [&](std::ostream& out) { write_paje(timeline, out); });
        else
            paraver(timeline);
    }

    void paraver(const trace::Timeline& timeline) const {
        const std::string base = output.ends_with(".prv") ? output.substr(0, output.size() - 4) : output;
        write_to(base + ".prv", [&](std::ostream& prv) {
            write_to(base + ".pcf", [&](std::ostream& pcf) {
                write_to(base + ".row", [&](std::ostream& row) { write_paraver(timeline, {prv, pcf, row}); });
            });
        });
    }
};

bool locale_is_utf8() {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        const char* value = std::getenv(name);
        if (value == nullptr || *value == '\0') continue;
        const std::string locale = value;
        return locale.find("UTF-8") != std::string::npos || locale.find("utf8") != std::string::npos;
    }
    return false;
}

struct Draw {
    std::string input;
    std::string output = "-";
    std::string title;
    bool text = false;
    bool ascii = false;
    bool tasks = false;
    int width = 0;

    void run() const {
        check_not_over(input, output);
        trace::Timeline timeline = load(input);
        if (tasks && timeline.work.empty())
            throw Error(ErrorCode::kBadInput,
                        fmt::format("{}: no task is in this trace: a program writes one of its tasks where "
                                    "HEDDLE_TRACE names a file",
                                    input));
        if (tasks || only_work(timeline)) timeline = by_task(timeline);
        if (text) {
            write_to(output, [&](std::ostream& out) { draw_text(timeline, out, text_options()); });
        } else {
            trace::SvgOptions options;
            if (!title.empty()) options.title = title;
            write_to(output, [&](std::ostream& out) { draw_svg(timeline, out, options); });
        }
    }

    trace::TextOptions text_options() const {
        trace::TextOptions options;
        const bool terminal = output == "-" && isatty(STDOUT_FILENO) != 0;
        winsize size{};
        if (width > 0)
            options.width = width;
        else if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
            options.width = size.ws_col;
        options.ascii = ascii || (terminal && !locale_is_utf8());
        options.color = terminal && std::getenv("NO_COLOR") == nullptr;
        return options;
    }
};

nlohmann::ordered_json to_json(const trace::Timeline& timeline, const trace::Summary& sum) {
    nlohmann::ordered_json clients = nlohmann::ordered_json::array();
    for (size_t i = 0; i < sum.clients.size(); ++i) {
        const trace::Account& account = sum.clients[i];
        clients.push_back({{"id", timeline.clients[i].id.value},
                           {"pid", timeline.clients[i].pid},
                           {"name", timeline.clients[i].name},
                           {"used_s", account.used_s},
                           {"borrowed_s", account.borrowed_s},
                           {"lent_s", account.lent_s},
                           {"idle_s", account.idle_s},
                           {"waited_s", account.waited_s}});
    }
    nlohmann::ordered_json work = nlohmann::ordered_json::array();
    for (const trace::WorkAccount& one : work_summary(timeline))
        work.push_back({{"name", one.name},
                        {"tasks", one.ended},
                        {"run_s", one.run_s},
                        {"longest_s", one.longest_s},
                        {"pauses", one.pauses},
                        {"paused_s", one.paused_s}});
    return {{"elapsed_s", sum.elapsed_s},
            {"cpus", timeline.cpus.size()},
            {"used_s", sum.used_s},
            {"idle_s", sum.idle_s},
            {"lent_s", sum.lent_s},
            {"clients", clients},
            {"work", work},
            {"dropped", timeline.dropped},
            {"truncated", timeline.truncated}};
}

struct Sum {
    std::string input;
    bool as_json = false;

    static void accounts(const trace::Timeline& timeline, std::ostream& out) {
        if (!only_work(timeline)) draw_accounts(timeline, out);
        if (!only_work(timeline) && !timeline.work.empty()) out << '\n';
        draw_work_accounts(timeline, out);
    }

    void run() const {
        const trace::Timeline timeline = load(input);
        write_to("-", [&](std::ostream& out) {
            // Names may hold bytes that JSON cannot: they are replaced, not refused.
            using nlohmann::ordered_json;
            if (as_json)
                out << to_json(timeline, summary(timeline))
                           .dump(-1, ' ', false, ordered_json::error_handler_t::replace)
                    << '\n';
            else
                accounts(timeline, out);
        });
    }
};

void add_convert(CLI::App& trace) {
    const auto convert = std::make_shared<Convert>();
    CLI::App* command = trace.add_subcommand("convert", "Write a trace in the format of another viewer");
    command->add_option("FILE", convert->input, "the trace that was recorded")->required();
    command->add_option("-t,--to", convert->format, "chrome (Perfetto, chrome://tracing), paje or paraver")
        ->required()
        ->check(CLI::IsMember({"chrome", "paje", "paraver"}));
    command->add_option("-o,--out", convert->output, "file to write; stdout where it is left out");
    command->callback([convert] { convert->run(); });
}

void add_draw(CLI::App& trace) {
    const auto draw = std::make_shared<Draw>();
    CLI::App* command =
        trace.add_subcommand("draw", "Draw who had which CPU when, as an SVG picture or as text");
    command->add_option("FILE", draw->input, "the trace that was recorded")->required();
    command->add_option("-o,--out", draw->output, "file to write; stdout where it is left out");
    command->add_option("--title", draw->title, "heading of the picture");
    command->add_flag("--tasks", draw->tasks,
                      "draw which task ran on which worker, also where the trace tells of CPUs");
    CLI::Option* text = command->add_flag("--text", draw->text, "draw for a terminal");
    command->add_flag("--ascii", draw->ascii, "letters in place of blocks")->needs(text);
    command->add_option("--width", draw->width, "columns of the text")
        ->needs(text)
        ->check(CLI::Range(40, 1000));
    command->callback([draw] { draw->run(); });
}

void add_summary(CLI::App& trace) {
    const auto sum = std::make_shared<Sum>();
    CLI::App* command = trace.add_subcommand(
        "summary", "Core-seconds used, lent and idle, for each program and in all; time in tasks");
    command->add_option("FILE", sum->input, "the trace that was recorded")->required();
    command->add_flag("--json", sum->as_json, "as JSON");
    command->callback([sum] { sum->run(); });
}

}  // namespace

void add_trace(CLI::App& app) {
    CLI::App* trace = app.add_subcommand("trace", "Record, convert, draw or sum up who had which CPU when");
    trace->require_subcommand(1);
    add_trace_record(*trace);
    add_convert(*trace);
    add_draw(*trace);
    add_summary(*trace);
}

}  // namespace heddle::tool
