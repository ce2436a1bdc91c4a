#include "streams/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/subprocess.hpp"

namespace heddle::streams {
namespace {

std::string contents(const std::string& path) {
    if (std::filesystem::is_directory(path))
        throw Error(ErrorCode::kBadInput, fmt::format("{} is a folder, and no file to read", path));
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    if (file) text << file.rdbuf();
    if (!file || file.bad())
        throw Error(ErrorCode::kBadInput, fmt::format("{} cannot be read: is there such a file?", path));
    return std::move(text).str();
}

/// Whether a line begins with '#', as all lines for the preprocessor do.
bool has_directives(std::string_view text) {
    size_t begin = 0;
    while (begin < text.size()) {
        const size_t first = text.find_first_not_of(" \t", begin);
        if (first != std::string_view::npos && text[first] == '#') return true;
        const size_t end = text.find('\n', begin);
        if (end == std::string_view::npos) return false;
        begin = end + 1;
    }
    return false;
}

/// `# 12 "file.h" 1`: the number and the name of the line that follows, as the preprocessor tells them.
bool read_marker(std::string_view line, uint32_t& number, std::string& file) {
    if (!line.starts_with("# ")) return false;
    size_t at = 2;
    number = 0;
    while (at < line.size() && line[at] >= '0' && line[at] <= '9')
        number = number * 10 + static_cast<uint32_t>(line[at++] - '0');
    if (at == 2 || at + 1 >= line.size() || line[at] != ' ' || line[at + 1] != '"') return false;
    file.clear();
    for (at += 2; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\' && at + 1 < line.size()) ++at;
        file += line[at];
    }
    return true;
}

}  // namespace

Source::Source(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {
    if (text_.size() > UINT32_MAX / 2)
        throw Error(ErrorCode::kLimit, fmt::format("{} is longer than 2 GiB", name_));
    files_.push_back(name_);
    uint32_t number = 1, file = 0;
    for (size_t begin = 0; begin <= text_.size();) {
        size_t end = std::min(text_.find('\n', begin), text_.size());
        std::string named;
        uint32_t next = 0;
        if (read_marker(std::string_view(text_).substr(begin, end - begin), next, named)) {
            file = static_cast<uint32_t>(std::find(files_.begin(), files_.end(), named) - files_.begin());
            if (file == files_.size()) files_.push_back(named);
            lines_.push_back({static_cast<uint32_t>(begin), number, file});
            std::fill(text_.begin() + static_cast<ptrdiff_t>(begin),
                      text_.begin() + static_cast<ptrdiff_t>(end), ' ');
            number = next;
        } else {
            lines_.push_back({static_cast<uint32_t>(begin), number++, file});
        }
        begin = end + 1;
    }
}

Source Source::of_file(const std::string& path) {
    std::string text = contents(path);
    if (!has_directives(text)) return {path, std::move(text)};
    const Output output = output_of({"cpp", "-undef", "-Wno-endif-labels", path});
    if (output.exit_code != 0)
        throw Error(ErrorCode::kBadInput,
                    fmt::format("{} has lines for the C preprocessor, and cpp fails on it:\n{}", path,
                                output.errors));
    return {path, output.text};
}

const Source::Line& Source::line_of(Place place) const {
    auto after = std::upper_bound(lines_.begin(), lines_.end(), place.offset,
                                  [](uint32_t offset, const Line& line) { return offset < line.begin; });
    return *std::prev(after);
}

std::string Source::where(Place place) const {
    const Line& line = line_of(place);
    return fmt::format("{}:{}:{}", files_[line.file], line.number, place.offset - line.begin + 1);
}

std::string Source::line_directive(Place place) const {
    const Line& line = line_of(place);
    std::string name;
    for (const char c : files_[line.file])
        name += c == '"' || c == '\\' ? fmt::format("\\{}", c) : std::string(1, c);
    return fmt::format("#line {} \"{}\"", line.number, name);
}

std::string Source::report(Place place, std::string_view message, std::string_view fix) const {
    const uint32_t begin = line_of(place).begin;
    const size_t end = std::min(text_.find('\n', begin), text_.size());
    std::string caret;
    for (size_t at = begin; at < std::min<size_t>(place.offset, end); ++at)
        caret += text_[at] == '\t' ? '\t' : ' ';
    return fmt::format("{}: {}\n    {}\n    {}^{}{}", where(place), message,
                       std::string_view(text_).substr(begin, end - begin), caret,
                       fix.empty() ? "" : "\n    fix: ", fix);
}

void Source::fail(Place place, std::string_view message, std::string_view fix) const {
    throw Error(ErrorCode::kBadInput, report(place, message, fix));
}

}  // namespace heddle::streams
