#include "streams/c4snet_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <type_traits>

#include "heddle/error.hpp"

namespace heddle::streams {
namespace {

constexpr std::array<std::string_view, 12> kNames{"unsigned char", "char",   "unsigned short", "short",
                                                  "unsigned int",  "int",    "unsigned long",  "long",
                                                  "float",         "double", "long double",    "pointer"};

/// Calls function(T()) with the type's T.
template <class Function>
auto with_type(c4snet_type_t type, Function&& function) {
    switch (type) {
        case CTYPE_uchar:
            return function(static_cast<unsigned char>(0));
        case CTYPE_char:
            return function(static_cast<char>(0));
        case CTYPE_ushort:
            return function(static_cast<unsigned short>(0));
        case CTYPE_short:
            return function(static_cast<short>(0));
        case CTYPE_uint:
            return function(0u);
        case CTYPE_int:
            return function(0);
        case CTYPE_ulong:
            return function(0ul);
        case CTYPE_long:
            return function(0l);
        case CTYPE_float:
            return function(0.0f);
        case CTYPE_double:
            return function(0.0);
        case CTYPE_ldouble:
            return function(0.0L);
        default:
            return function(static_cast<void*>(nullptr));
    }
}

template <class T>
constexpr bool kIsCharacter = std::is_same_v<T, char> || std::is_same_v<T, unsigned char>;

template <class T>
void append(std::string& to, T value) {
    if constexpr (kIsCharacter<T>)
        to += static_cast<char>(value);
    else if constexpr (std::is_pointer_v<T>)
        to += fmt::format("{}", value);
    else if constexpr (std::is_same_v<T, long double>)
        to += fmt::format("{:.21g}", value);
    else
        to += fmt::format("{}", value);
}

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("\"{}\" is none of C4SNet's data: {}; they are as in (int)5 or (double[2])1.5,2",
                            text.substr(0, 40), why));
}

size_t behind_blanks(std::string_view text, size_t at) {
    return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

template <class T>
T read(std::string_view text, size_t& at) {
    T value{};
    if constexpr (kIsCharacter<T>) {
        if (at == text.size()) refuse(text, "it has too few elements");
        value = static_cast<T>(text[at++]);
    } else if constexpr (std::is_pointer_v<T>) {
        refuse(text, "pointers mean nothing in another process");
    } else {
        at = behind_blanks(text, at);
        const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
        if (error != std::errc())
            refuse(text, error == std::errc::result_out_of_range ? "a number does not fit its type"
                                                                 : "a number is missing");
        at = static_cast<size_t>(end - text.data());
    }
    return value;
}

}  // namespace

size_t c4snet_size(c4snet_type_t type) {
    if (static_cast<size_t>(type) >= kNames.size()) return 0;
    return with_type(type, [](auto value) { return sizeof value; });
}

std::string c4snet_text(c4snet_type_t type, size_t size, const void* elements) {
    std::string text = fmt::format("({}{})", kNames[type], size == 1 ? "" : fmt::format("[{}]", size));
    with_type(type, [&](auto value) {
        const auto* const values = static_cast<const decltype(value)*>(elements);
        for (size_t i = 0; i < size; ++i) {
            if (i > 0) text += ',';
            append(text, values[i]);
        }
    });
    return text;
}

c4snet_data_t* read_c4snet_text(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    const size_t close = text.find(')');
    if (begin == std::string_view::npos || text[begin] != '(' || close == std::string_view::npos)
        refuse(text, "it does not begin with a type in parentheses");
    std::string_view name = text.substr(begin + 1, close - begin - 1);
    size_t size = 1;
    if (const size_t bracket = name.find('['); bracket != std::string_view::npos) {
        const auto [end, error] = std::from_chars(name.data() + bracket + 1, name.data() + name.size(), size);
        if (error != std::errc() || end + 1 != name.data() + name.size() || *end != ']')
            refuse(text, "its number of elements is no number");
        if (size > text.size()) refuse(text, "it has fewer elements than it says");
        name = name.substr(0, bracket);
    }
    size_t type = 0;
    while (type < kNames.size() && kNames[type] != name) ++type;
    if (type == kNames.size()) refuse(text, fmt::format("there is no type \"{}\"", name));
    void* elements = nullptr;
    std::unique_ptr<c4snet_data_t, void (*)(c4snet_data_t*)> made(
        C4SNetAlloc(static_cast<c4snet_type_t>(type), size, &elements), &C4SNetFree);
    if (made == nullptr) throw Error(ErrorCode::kLimit, "there is no memory for a field");
    size_t at = close + 1;
    with_type(static_cast<c4snet_type_t>(type), [&](auto value) {
        auto* const values = static_cast<decltype(value)*>(elements);
        for (size_t i = 0; i < size; ++i) {
            if (i > 0 && at < text.size() && text[at] == ',') ++at;
            values[i] = read<decltype(value)>(text, at);
        }
    });
    if (behind_blanks(text, at) != text.size())
        refuse(text, fmt::format("\"{}\" follows its last element", text.substr(at, 40)));
    return made.release();
}

}  // namespace heddle::streams
