// The subcommands of `heddle snet` that look at a program and run nothing: check, graph, explain.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>

#include "base/standard_streams.hpp"
#include "base/subprocess.hpp"
#include "base/temporary_folder.hpp"
#include "box_compiler.hpp"
#include "command.hpp"
#include "heddle/error.hpp"
#include "streams/checker.hpp"
#include "streams/explainer.hpp"
#include "streams/graph.hpp"
#include "streams/parser.hpp"

namespace heddle::tool {
namespace {

struct LookOptions {
    std::string program, record, format, output = "-";
};

void print_nets(const std::vector<std::unique_ptr<streams::NetDefinition>>& nets,
                const streams::Typing& typing, int depth) {
    for (const auto& net : nets) {
        fmt::print("{:{}}net {}\n", "", 4 * depth, net->name);
        for (const streams::TypeMap& map : typing.of(*net))
            fmt::print("{:{}}    {} -> {}\n", "", 4 * depth, map.input.text(),
                       map.outputs.empty() ? "nothing" : streams::text_of(map.outputs, " | "));
        print_nets(net->nets, typing, depth + 1);
    }
}

void check(const LookOptions& options) {
    const auto program = streams::parse(streams::Source::of_file(options.program));
    check_languages(*program);
    const streams::Typing typing(*program);
    print_nets(program->nets, typing, 0);
    streams::Checker checker(*program, typing);
    const std::vector<streams::Finding> findings = checker.check();
    for (const streams::Finding& finding : findings) to_stderr("{}\n", finding.text());
    if (!findings.empty())
        throw Error(ErrorCode::kBadInput,
                    fmt::format("{} finding(s) in {}", findings.size(), options.program));
}

/// Throws kUnavailable where Graphviz is not there.
std::string svg_of(const std::string& dot) {
    const TemporaryFolder folder("/tmp/heddle-graph-");
    const std::string file = folder.path() + "/graph.dot";
    std::ofstream(file) << dot;
    const Output output = output_of({"dot", "-Tsvg", file});
    if (output.exit_code != 0)
        throw Error(ErrorCode::kSystem, fmt::format("Graphviz's dot fails:\n{}", output.errors));
    return output.text;
}

std::string picture(const LookOptions& options, const streams::Program& program) {
    const streams::Typing typing(program);
    if (options.format == "text") return streams::outline_of(program, typing);
    const std::string dot = streams::dot_of(program, typing);
    if (options.format == "dot") return dot;
    try {
        return svg_of(dot);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::kUnavailable || !options.format.empty()) throw;
        to_stderr("heddle snet: Graphviz's dot is not there, which draws SVG: this is text\n");
        return streams::outline_of(program, typing);
    }
}

void graph(const LookOptions& options) {
    const auto program = streams::parse(streams::Source::of_file(options.program));
    const std::string text = picture(options, *program);
    std::FILE* const file = options.output == "-" ? stdout : std::fopen(options.output.c_str(), "w");
    if (file == nullptr)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("{} cannot be opened: {}", options.output, std::strerror(errno)));
    bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    written = (file == stdout ? std::fflush(file) : std::fclose(file)) == 0 && written;
    if (!written)
        throw Error(ErrorCode::kSystem,
                    fmt::format("{} cannot be written: {}", options.output, std::strerror(errno)));
}

void explain(const LookOptions& options) {
    const auto program = streams::parse(streams::Source::of_file(options.program));
    const streams::Typing typing(*program);
    fmt::print("{}", streams::explain(*program, typing, streams::read_known_record(options.record)));
}

}  // namespace

void add_snet_looks(CLI::App& snet) {
    auto options = std::make_shared<LookOptions>();
    CLI::App* checks = snet.add_subcommand("check",
                                           "Tell what each net of a program takes and makes, and what "
                                           "cannot work");
    checks->add_option("program", options->program, "A file of S-Net")->required();
    checks->callback([options] { check(*options); });

    CLI::App* graphs = snet.add_subcommand("graph", "Draw the network of a program");
    graphs->add_option("program", options->program, "A file of S-Net")->required();
    graphs
        ->add_option("-f,--format", options->format,
                     "svg, by Graphviz; dot, its language; or text. Without it svg, or text where there is "
                     "no Graphviz")
        ->check(CLI::IsMember({"svg", "dot", "text"}));
    graphs->add_option("-o,--output", options->output, "A file for it; -: stdout");
    graphs->callback([options] { graph(*options); });

    CLI::App* explains = snet.add_subcommand("explain", "Tell where a record goes, and why");
    explains->add_option("program", options->program, "A file of S-Net")->required();
    explains->add_option("record", options->record, "Its labels, as in '{a, <t = 3>}'")->required();
    explains->callback([options] { explain(*options); });
}

}  // namespace heddle::tool
