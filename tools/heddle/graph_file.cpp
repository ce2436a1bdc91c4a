#include "graph_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

#include "bench/host.hpp"
#include "bench/process.hpp"
#include "command.hpp"
#include "heddle/error.hpp"

namespace heddle::tool {
namespace {

/// Its layout of thousands of nodes takes minutes, and no reader would see anything.
constexpr auto kPatience = std::chrono::minutes(2);

void write_text(const std::string& path, const std::string& text) {
    std::ofstream out(path, std::ios::binary);
    out << text;
    out.close();
    if (!out)
        throw Error(ErrorCode::kSystem,
                    fmt::format("{}: it cannot be written: {}", path, std::strerror(errno)));
}

}  // namespace

void check_graph_file(const std::string& path) {
    if (path.ends_with(".dot")) return;
    if (!path.ends_with(".svg"))
        throw UsageError(fmt::format("{}: a graph is written to a file that ends in .dot or .svg", path));
    if (bench::find_in_path("dot").empty())
        throw Error(
            ErrorCode::kUnavailable,
            fmt::format("{}: Graphviz draws it, and there is no dot: apt-get install graphviz, or name a "
                        "file that ends in .dot",
                        path));
}

void write_graph_file(const std::string& path, const std::string& dot) {
    if (path.ends_with(".dot")) return write_text(path, dot);
    const ScratchFolder scratch;
    const std::string source = scratch.path() + "/graph.dot";
    write_text(source, dot);
    const bench::Command command{{"dot", "-Tsvg", "-o", path, source}, {}, {}};
    const bench::Outcome outcome = bench::run_together({&command, 1}, kPatience).front();
    if (outcome.exit_code == 0) return;
    const std::string why = outcome.cut ? "it takes too long: draw fewer tasks"
                                        : outcome.errors.substr(0, outcome.errors.find('\n'));
    throw Error(ErrorCode::kSystem, fmt::format("{}: Graphviz cannot draw it: {}", path, why));
}

}  // namespace heddle::tool
