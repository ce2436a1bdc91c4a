#include "trace/escape.hpp"

#include <fmt/format.h>

namespace heddle::trace {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

struct Character {
    char32_t point = kReplacement;
    size_t bytes = 1;
};

// The first character of a text that is not empty. An invalid sequence counts as one byte, so that what
// follows a broken one is not lost.
Character first_character(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return {lead, 1};
    const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
    char32_t point = lead & (0xFFU >> (length + 1));
    for (size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return {};
        point = point << 6 | (byte(i) & 0x3FU);
    }
    const char32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
    if (point < least || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return {};
    return {point, length};
}

void append_utf8(std::string& out, char32_t point) {
    const auto put = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
    if (point < 0x80) {
        put(point);
    } else if (point < 0x800) {
        put(0xC0 | point >> 6);
        put(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        put(0xE0 | point >> 12);
        put(0x80 | (point >> 6 & 0x3F));
        put(0x80 | (point & 0x3F));
    } else {
        put(0xF0 | point >> 18);
        put(0x80 | (point >> 12 & 0x3F));
        put(0x80 | (point >> 6 & 0x3F));
        put(0x80 | (point & 0x3F));
    }
}

template <class Visit>
void for_each_character(std::string_view text, Visit visit) {
    while (!text.empty()) {
        const Character character = first_character(text);
        visit(character.point);
        text.remove_prefix(character.bytes);
    }
}

char32_t visible(char32_t point) {
    if (point < 0x20) return 0x2400 + point;
    if (point == 0x7F) return 0x2421;
    const bool control = point >= 0x80 && point < 0xA0;
    const bool line_or_direction = (point >= 0x200E && point <= 0x200F) ||
                                   (point >= 0x2028 && point <= 0x202E) ||
                                   (point >= 0x2066 && point <= 0x2069) || point == 0x061C;
    const bool no_character = (point & 0xFFFE) == 0xFFFE || (point >= 0xFDD0 && point <= 0xFDEF);
    return control || line_or_direction || no_character ? kReplacement : point;
}

// East Asian wide characters and pictures take two columns, combining accents none; good enough for a table.
size_t width(char32_t point) {
    if ((point >= 0x0300 && point <= 0x036F) || point == 0x200B || point == 0x200D) return 0;
    const bool wide = (point >= 0x1100 && point <= 0x115F) || (point >= 0x2E80 && point <= 0xA4CF) ||
                      (point >= 0xAC00 && point <= 0xD7A3) || (point >= 0xF900 && point <= 0xFAFF) ||
                      (point >= 0xFE30 && point <= 0xFE6F) || (point >= 0xFF00 && point <= 0xFF60) ||
                      (point >= 0x1F300 && point <= 0x1FAFF) || (point >= 0x20000 && point <= 0x3FFFD);
    return wide ? 2 : 1;
}

}  // namespace

std::string valid_utf8(std::string_view text, size_t max_bytes) {
    std::string out;
    bool full = false;
    for_each_character(text.substr(0, max_bytes), [&](char32_t point) {
        const size_t before = out.size();
        if (!full) append_utf8(out, point);
        if (out.size() <= max_bytes) return;
        out.resize(before);
        full = true;
    });
    return out;
}

std::string printable(std::string_view text) {
    std::string out;
    for_each_character(text, [&](char32_t point) { append_utf8(out, visible(point)); });
    return out;
}

std::string json_string(std::string_view text, size_t max_bytes) {
    std::string out = "\"";
    for (const char c : valid_utf8(text, max_bytes)) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
            out += c;
        }
    }
    return out + '"';
}

std::string xml_text(std::string_view text) {
    std::string out;
    for (const char c : printable(text)) {
        switch (c) {
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '&':
                out += "&amp;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\'':
                out += "&#39;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

std::string paje_string(std::string_view text) {
    std::string out = "\"";
    for (const char c : printable(text)) out += c == '"' ? '\'' : c;
    return out + '"';
}

size_t columns_of(std::string_view text) {
    size_t columns = 0;
    for_each_character(text, [&](char32_t point) { columns += width(point); });
    return columns;
}

std::string shortened(std::string_view text, size_t columns, bool ascii) {
    if (columns_of(text) <= columns) return std::string(text);
    if (columns == 0) return "";
    std::string out;
    size_t used = 0;
    for_each_character(text, [&](char32_t point) {
        used += width(point);
        if (used < columns) append_utf8(out, point);
    });
    return out + (ascii ? "~" : "…");
}

std::string ascii_only(std::string_view text) {
    std::string out;
    for_each_character(text, [&](char32_t point) {
        out += point < 0x80 ? static_cast<char>(point) : point == 0xB5 ? 'u' : '?';
    });
    return out;
}

}  // namespace heddle::trace
