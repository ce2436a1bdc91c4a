#include "byte_size.hpp"

#include <fmt/format.h>

#include <exception>

#include "command.hpp"

namespace heddle::tool {

uint64_t byte_size(const std::string& text) {
    size_t digits = 0;
    uint64_t size = 0;
    try {
        size = std::stoull(text, &digits);
    } catch (const std::exception&) {
        digits = 0;
    }
    const std::string unit = text.substr(digits);
    const unsigned shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : 0;
    if (digits == 0 || text[0] == '-' || (shift == 0 && !unit.empty()) || size << shift >> shift != size)
        throw UsageError(fmt::format("\"{}\" is no size: it is to be as 4096, 64K, 10M or 2G", text));
    return size << shift;
}

}  // namespace heddle::tool
