#include "streams/origin.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

namespace heddle::streams {
namespace {

bool is_of_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// The name or number that begins there, or one character.
std::string_view word_at(std::string_view line, size_t at) {
    size_t end = at;
    while (end < line.size() && is_of_name(line[end])) ++end;
    return line.substr(at, std::max<size_t>(end - at, 1));
}

std::vector<size_t> places_of(std::string_view word, std::string_view line) {
    std::vector<size_t> places;
    for (size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1))
        if (word_at(line, at) == word && (at == 0 || !is_of_name(word[0]) || !is_of_name(line[at - 1])))
            places.push_back(at);
    return places;
}

}  // namespace

Origin origin_of(std::string_view line, size_t at, std::span<const std::string> written) {
    const std::string_view first = written[0];
    const std::string_view word = word_at(line, std::min(at, line.size()));
    const auto same = static_cast<size_t>(std::ranges::mismatch(first, line).in1 - first.begin());
    if (at + word.size() <= same || first == line) return {0, at};
    for (size_t i = written.size(); !word.empty() && i-- > 0;)
        if (std::string_view(written[i]).ends_with(line.substr(at)))
            return {i, written[i].size() - (line.size() - at)};
    std::vector<Origin> all;
    for (size_t i = 0; !word.empty() && i < written.size(); ++i)
        for (const size_t place : places_of(word, written[i])) all.push_back({i, place});
    const std::vector<size_t> now = places_of(word, line);
    const auto which = static_cast<size_t>(std::ranges::find(now, at) - now.begin());
    if (all.size() == now.size() && which < all.size()) return all[which];
    size_t macro = same;
    while (macro > 0 && is_of_name(first[macro - 1])) --macro;
    return {0, macro};
}

}  // namespace heddle::streams
