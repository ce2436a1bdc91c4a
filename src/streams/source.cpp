#include "streams/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>

#include "streams/origin.hpp"
#include "streams/preprocessor.hpp"

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
    const std::string text = contents(path);
    Source made(path, preprocessed(path, text));
    if (made.text_ != text) made.read_originals();
    return made;
}

const Source::Line& Source::line_of(Place place) const {
    auto after = std::upper_bound(lines_.begin(), lines_.end(), place.offset,
                                  [](uint32_t offset, const Line& line) { return offset < line.begin; });
    return *std::prev(after);
}

std::string_view Source::text_of(const Line& line) const {
    const size_t end = std::min(text_.find('\n', line.begin), text_.size());
    return std::string_view(text_).substr(line.begin, end - line.begin);
}

void Source::read_originals() {
    for (const std::string& file : files_) {
        std::vector<std::string>& lines = originals_.emplace_back();
        std::error_code none;
        std::ifstream text;
        if (std::filesystem::is_regular_file(file, none)) text.open(file, std::ios::binary);
        for (std::string line; std::getline(text, line);) lines.push_back(line);
    }
}

Source::Written Source::written(Place place) const {
    const Line& line = line_of(place);
    const size_t column = place.offset - line.begin;
    const std::string_view text = text_of(line);
    Written here{files_[line.file], line.number, column, std::string(text)};
    if (originals_.empty() || line.number == 0 || line.number > originals_[line.file].size()) return here;
    const std::vector<std::string>& original = originals_[line.file];
    // The arguments of a macro may stand in lines behind it, of which less is left.
    size_t end = line.number;
    for (const Line* next = &line + 1;
         next != lines_.data() + lines_.size() && next->file == line.file && next->number == end + 1 &&
         end < original.size() && text_of(*next) != original[end];
         ++next)
        ++end;
    const std::span<const std::string> lines(original.data() + line.number - 1, end - line.number + 1);
    const Origin origin = origin_of(text, column, lines);
    here.line += static_cast<uint32_t>(origin.line);
    here.column = origin.column;
    here.text = lines[origin.line];
    return here;
}

std::string Source::where(Place place) const {
    const Written here = written(place);
    return fmt::format("{}:{}:{}", here.file, here.line, here.column + 1);
}

std::string Source::line_directive(Place place) const {
    const Line& line = line_of(place);
    std::string name;
    for (const char c : files_[line.file])
        name += c == '"' || c == '\\' ? fmt::format("\\{}", c) : std::string(1, c);
    return fmt::format("#line {} \"{}\"", line.number, name);
}

std::string Source::report(Place place, std::string_view message, std::string_view fix) const {
    Written here = written(place);
    std::string caret;
    for (const char c : here.text.substr(0, here.column)) caret += c == '\t' ? '\t' : ' ';
    std::ranges::replace(here.text, '\0', ' ');  // it would end the message
    return fmt::format("{}: {}\n    {}\n    {}^{}{}", where(place), message, here.text, caret,
                       fix.empty() ? "" : "\n    fix: ", fix);
}

void Source::fail(Place place, std::string_view message, std::string_view fix) const {
    throw Error(ErrorCode::kBadInput, report(place, message, fix));
}

}  // namespace heddle::streams
