// Where something was written that the C preprocessor has moved within its line.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace heddle::streams {

/// Numbers from 0 on.
struct Origin {
    size_t line = 0, column = 0;
};

/// Of what is at `at` in a line that was made of `written`, of which there is one at least: the same word
/// where it can be told which one it was, else the name of the macro.
[[nodiscard]] Origin origin_of(std::string_view line, size_t at, std::span<const std::string> written);

}  // namespace heddle::streams
