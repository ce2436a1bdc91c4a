// The one table of HEDDLE_* variables. Tools print it, `heddle --help` and the manual are made from it, and a
// name that is not in it is reported as a likely misspelling.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

struct Setting {
    std::string_view name;
    std::string_view values;
    std::string_view meaning;
};

[[nodiscard]] std::span<const Setting> settings();

/// The value of a variable of the table, or "" where it is unset, and in a program that has more rights than
/// its user (secure_getenv(3)). A name that is not in the table is a mistake of ours and throws
/// kInvalidArgument.
[[nodiscard]] std::string setting(std::string_view name);

/// One line for each HEDDLE_* variable of the environment that the table does not have, with the nearest name
/// it has.
[[nodiscard]] std::vector<std::string> unknown_settings();

/// The same for the first one of this process that asks, who tells the user; nothing for others. Any thread.
[[nodiscard]] std::vector<std::string> untold_settings();

}  // namespace heddle
