#include "topology/synthetic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "heddle/cpu_set.hpp"
#include "heddle/error.hpp"

namespace heddle {
namespace {

constexpr size_t kMaxLength = 4096;
constexpr size_t kMaxLevels = 64;
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kNameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kSpace = " \t\n";

[[noreturn]] void refuse(std::string_view description, const std::string& why) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("topology '{}': {}; write it as 'numa:2 core:64 pu:2' (from the outside in, for each)",
                    description.substr(0, 80), why));
}

/// Takes the next level off `rest`: up to a space outside parentheses.
std::string_view take_level(std::string_view& rest) {
    size_t end = 0;
    bool inside = false;
    for (; end < rest.size(); ++end) {
        if (rest[end] == '(') inside = true;
        if (rest[end] == ')') inside = false;
        if (!inside && kSpace.find(rest[end]) != std::string_view::npos) break;
    }
    const std::string_view level = rest.substr(0, end);
    rest.remove_prefix(end);
    return level;
}

/// A type's name, letters and digits; hwloc would read leading digits as a level of their own.
bool is_type(std::string_view text) {
    return !text.empty() && text.find_first_not_of(kNameCharacters) == std::string_view::npos &&
           (text[0] < '0' || text[0] > '9');
}

/// The numbers of an attribute such as indexes=0,2,1,3 end up in bitmaps of that many bits.
void check_indexes(std::string_view description, std::string_view attributes) {
    const size_t indexes = attributes.find("indexes");
    if (indexes == std::string_view::npos) return;
    std::string_view rest = attributes.substr(indexes);
    while (true) {
        rest.remove_prefix(std::min(rest.find_first_of(kDigits), rest.size()));
        if (rest.empty()) return;
        long number = 0;
        const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
        if (failure != std::errc{} || number >= CpuSet::kMaxCpus)
            refuse(description,
                   fmt::format("an index in '{}' is not below {}", attributes, CpuSet::kMaxCpus));
        rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    }
}

/// A level without its attributes; these are one pair of parentheses at its end. hwloc is more liberal and
/// would read what follows them as another level.
std::string_view without_attributes(std::string_view description, std::string_view level) {
    const size_t open = level.find('(');
    if (open == std::string_view::npos) return level;
    const std::string_view attributes = level.substr(open);
    if (attributes.find_first_of("()[]", 1) != attributes.size() - 1 || attributes.back() != ')')
        refuse(description, fmt::format("'{}' does not end with its attributes in parentheses", level));
    check_indexes(description, attributes);
    return level.substr(0, open);
}

/// How many objects a level has in each object of the level before it.
long count_of(std::string_view description, std::string_view level) {
    const std::string_view head = without_attributes(description, level);
    const size_t colon = head.find(':');
    const std::string_view digits = colon == std::string_view::npos ? head : head.substr(colon + 1);
    long count = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (failure != std::errc{} || end != digits.data() + digits.size() || count < 1 ||
        (colon != std::string_view::npos && !is_type(head.substr(0, colon))))
        refuse(description, fmt::format("'{}' is not TYPE:COUNT{}", level,
                                        level.find('/') == std::string_view::npos
                                            ? ""
                                            : fmt::format(" (a recorded machine is xml:{})", level)));
    return count;
}

/// Memory at the side of a level: [TYPE] or [TYPE(attributes)].
void check_side(std::string_view description, std::string_view level) {
    if (level.size() < 2 || level.back() != ']')
        refuse(description, fmt::format("'{}' does not end with ]", level));
    const std::string_view type = without_attributes(description, level.substr(1, level.size() - 2));
    if (!is_type(type)) refuse(description, fmt::format("'{}' is not [TYPE]", level));
}

}  // namespace

SyntheticText checked_synthetic(std::string_view description) {
    if (description.size() > kMaxLength)
        refuse(description, fmt::format("longer than {} characters", kMaxLength));
    for (const char c : description)
        if (c != '\t' && c != '\n' && (c < ' ' || c > '~'))
            refuse(description, "it has a character that is not printable");
    std::string text;
    std::string_view rest = description;
    std::string_view last;
    size_t levels = 0;
    long objects = 1;
    while (true) {
        rest.remove_prefix(std::min(rest.find_first_not_of(kSpace), rest.size()));
        if (rest.empty()) break;
        const std::string_view level = take_level(rest);
        if (++levels > kMaxLevels) refuse(description, fmt::format("more than {} levels", kMaxLevels));
        if (level.starts_with('[')) {
            check_side(description, level);
        } else {
            const long count = count_of(description, level);
            if (count > kMaxSyntheticCpus / objects)
                refuse(description, fmt::format("'{}' makes more than {} CPUs", level, kMaxSyntheticCpus));
            objects *= count;
            last = level;
        }
        text += text.empty() ? "" : " ";
        text += level;
    }
    if (last.empty()) refuse(description, "it names no level");
    return {text, objects};
}

}  // namespace heddle
