// The descriptors 0 to 2 as a program found them, and text for stderr that cannot end it.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace heddle {

/// Gives each of descriptors 0 to 2 that is closed a file that refuses what the descriptor is for, so that
/// nothing which is opened later takes its number, and reading and writing still fail as on a closed one.
/// First thing in main().
void fill_standard_streams();

/// Writes to stderr in one piece; what cannot be written there is lost. Any thread.
void to_stderr(std::string_view text) noexcept;

template <class... Arguments>
void to_stderr(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    to_stderr(std::string_view(fmt::format(text, std::forward<Arguments>(arguments)...)));
}

}  // namespace heddle
