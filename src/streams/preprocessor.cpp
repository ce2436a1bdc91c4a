#include "streams/preprocessor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <tuple>
#include <utility>

#include "base/subprocess.hpp"
#include "base/temporary_folder.hpp"
#include "heddle/error.hpp"

namespace heddle::streams {
namespace {

/// Behind '#' and its blanks; npos: the line is none for the preprocessor.
size_t directive_in(std::string_view line) {
    const size_t mark = line.find_first_not_of(" \t");
    if (mark == std::string_view::npos || line[mark] != '#') return std::string_view::npos;
    return std::min(line.find_first_not_of(" \t", mark + 1), line.size());
}

/// Directives, also behind the end of a comment, or lines that a backslash joins.
bool is_for_preprocessor(std::string_view text) {
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        std::string_view line = text.substr(begin, end - begin);
        if (line.ends_with('\\') && end < text.size()) return true;
        if (const size_t comment = line.rfind("*/"); comment != std::string_view::npos)
            line.remove_prefix(comment + 2);
        if (directive_in(line) != std::string_view::npos) return true;
        begin = end + 1;
    }
    return false;
}

/// Where the code of the next box is: its first byte and the one behind its last. npos, twice: there is none.
std::pair<size_t, size_t> next_code(std::string_view text, size_t at) {
    constexpr size_t kNone = std::string_view::npos;
    while (at < text.size()) {
        const std::string_view rest = text.substr(at);
        const bool line = rest.starts_with("//");
        if (line || rest.starts_with("/*")) {
            const size_t end = text.find(line ? "\n" : "*/", at + 2);
            if (end == kNone) break;
            at = end + 1;
        } else if (rest.starts_with("<<<")) {
            return {at, std::min(text.find(">>>", at), text.size())};
        } else {
            ++at;
        }
    }
    return {kNone, kNone};
}

/// With kIncludeOfCode, which cpp leaves alone.
std::string with_includes_of_code_kept(std::string_view text) {
    std::string kept;
    size_t copied = 0;
    for (auto [begin, end] = next_code(text, 0); begin != std::string_view::npos;
         std::tie(begin, end) = next_code(text, end)) {
        while (begin < end) {
            const size_t line_end = std::min(text.find('\n', begin), end);
            const size_t word = directive_in(text.substr(begin, line_end - begin));
            constexpr std::string_view kInclude = "include";
            if (word != std::string_view::npos && text.substr(begin + word).starts_with(kInclude)) {
                kept += text.substr(copied, begin - copied);
                kept += kIncludeOfCode;
                copied = begin + word + kInclude.size();
            }
            begin = line_end + 1;
        }
    }
    return kept += text.substr(copied);
}

}  // namespace

std::string preprocessed(const std::string& path, std::string text) {
    if (!is_for_preprocessor(text)) return text;
    const std::string kept = with_includes_of_code_kept(text);
    const std::string parent = std::filesystem::path(path).parent_path().string();
    const std::string folder = parent.empty() ? std::string(".") : parent;
    const TemporaryFolder work("/tmp/heddle-cpp-");
    const std::string file = work.path() + "/program";
    std::string name;
    for (const char c : path) name += c == '"' || c == '\\' ? fmt::format("\\{}", c) : std::string(1, c);
    std::ofstream(file) << "# 1 \"" << name << "\"\n" << kept;
    // Words that a program may have as names are none of its macros.
    const Output output = output_of(
        {"cpp", "-Ulinux", "-Uunix", "-Ui386", "-Umips", "-Wno-endif-labels", "-iquote", folder, file});
    if (output.exit_code != 0)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("{} has lines for the C preprocessor, and cpp fails on it:\n{}", path,
                                output.errors));
    return output.text;
}

}  // namespace heddle::streams
