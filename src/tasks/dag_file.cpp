#include "tasks/dag_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/settings.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

std::atomic<int> runtimes{0};

/// "x.dot" is "x-2.dot" for the second runtime; "%p" the process.
std::string file_name(std::string name, int number) {
    if (const size_t at = name.find("%p"); at != std::string::npos)
        name.replace(at, 2, std::to_string(::getpid()));
    if (number == 1) return name;
    const size_t slash = name.find_last_of('/'), dot = name.find_last_of('.');
    const bool ends = dot != std::string::npos && (slash == std::string::npos || dot > slash);
    return name.insert(ends ? dot : name.size(), fmt::format("-{}", number));
}

}  // namespace

std::unique_ptr<DagFile> DagFile::from_environment() {
    const std::string named = setting("HEDDLE_DAG");
    if (named.empty()) return nullptr;
    for (const std::string_view picture : {".svg", ".png", ".pdf"})
        if (named.ends_with(picture))
            throw Error(ErrorCode::kInvalidArgument,
                        fmt::format("HEDDLE_DAG: {}: the graph is written as text: name a file that ends in "
                                    ".dot, of which Graphviz makes a picture (dot -T{})",
                                    named, picture.substr(1)));
    const std::string name = file_name(named, ++runtimes);
    std::FILE* const file = std::fopen(name.c_str(), "we");
    if (file == nullptr)
        throw Error(ErrorCode::kSystem,
                    fmt::format("HEDDLE_DAG: {}: it cannot be written: {}", name, std::strerror(errno)));
    return std::unique_ptr<DagFile>(new DagFile(file));
}

DagFile::~DagFile() {
    try {
        const std::string text = log_.dot();
        (void)std::fwrite(text.data(), 1, text.size(), file_);
    } catch (const std::bad_alloc&) {
        (void)std::fputs("digraph tasks { \"there was no memory to write it\" }\n", file_);
    }
    (void)std::fclose(file_);
}

}  // namespace heddle
