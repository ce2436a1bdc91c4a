#include "segment_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "byte_size.hpp"
#include "command.hpp"

namespace heddle::tool {
namespace {

std::vector<std::string> words_of(const std::string& text) {
    std::vector<std::string> words;
    for (size_t from = 0; from <= text.size();) {
        const size_t comma = std::min(text.find(',', from), text.size());
        words.push_back(text.substr(from, comma - from));
        from = comma + 1;
    }
    return words;
}

memory::SegmentDescription described(const std::string& kind, std::span<const std::string> options) {
    memory::SegmentDescription description{kind, {}};
    for (const std::string& option : options) {
        const size_t equals = option.find('=');
        if (equals == std::string::npos)
            throw UsageError(
                fmt::format("\"{}\" is no option of a segment: it is to be as path=/scratch", option));
        description.options[option.substr(0, equals)] = option.substr(equals + 1);
    }
    return description;
}

}  // namespace

memory::SegmentDescription segment_description(const std::string& text) {
    const std::vector<std::string> words = words_of(text);
    return described(words[0], std::span(words).subspan(1));
}

WantedSegment wanted_segment(const std::string& text) {
    const std::vector<std::string> words = words_of(text);
    if (words.size() < 2)
        throw UsageError(
            fmt::format("\"{}\" is no segment: it is to be as shm,64M or file,1G,path=/scratch", text));
    return {byte_size(words[1]), described(words[0], std::span(words).subspan(2))};
}

}  // namespace heddle::tool
