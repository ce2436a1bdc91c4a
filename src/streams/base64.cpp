#include "streams/base64.hpp"

#include <cstdint>

#include "heddle/error.hpp"

namespace heddle::streams {
namespace {

constexpr std::string_view kCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

int base64_value(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

char base64_character(unsigned value) {
    return kCharacters[value & 63];
}

std::string base64_encoded(std::string_view bytes) {
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (size_t i = 0; i < bytes.size(); i += 3) {
        uint32_t group = 0;
        const size_t count = std::min<size_t>(3, bytes.size() - i);
        for (size_t k = 0; k < 3; ++k)
            group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
        for (size_t k = 0; k < 4; ++k) text += k <= count ? base64_character(group >> (18 - 6 * k)) : '=';
    }
    return text;
}

std::string base64_decoded(std::string_view text) {
    if (text.size() % 4 != 0)
        throw Error(ErrorCode::kBadInput,
                    "base64 comes in groups of four characters, and here some are missing");
    std::string bytes;
    bytes.reserve(text.size() / 4 * 3);
    for (size_t i = 0; i < text.size(); i += 4) {
        uint32_t group = 0;
        size_t count = 3;
        for (size_t k = 0; k < 4; ++k) {
            const char c = text[i + k];
            const bool pads = c == '=' && k >= 2 && i + 4 == text.size() && (k == 3 || text[i + 3] == '=');
            if (pads && count == 3) count = k - 1;
            const int value = pads ? 0 : base64_value(c);
            if (value < 0) throw Error(ErrorCode::kBadInput, "a character is none of base64");
            group = group << 6 | static_cast<uint32_t>(value);
        }
        if ((group & (count == 1 ? 0xFFFFu : count == 2 ? 0xFFu : 0u)) != 0)
            throw Error(ErrorCode::kBadInput, "base64 ends with bits that belong to no byte");
        for (size_t k = 0; k < count; ++k) bytes += static_cast<char>(group >> (16 - 8 * k) & 0xFF);
    }
    return bytes;
}

}  // namespace heddle::streams
