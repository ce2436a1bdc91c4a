// A check of the parser for numbers that may have a fraction: CLI::Range lets what is no number pass.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

namespace heddle::tool {

inline CLI::Validator number_within(double low, double high) {
    const std::string range = fmt::format("a number from {} to {}", low, high);
    return {[=](std::string& text) {
                double value = 0;
                const bool is_number = CLI::detail::lexical_cast(text, value);
                return is_number && value >= low && value <= high ? std::string()
                                                                  : fmt::format("{} is not {}", text, range);
            },
            range};
}

}  // namespace heddle::tool
