#include "base/settings.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "base/settings_table.h"
#include "heddle/error.hpp"

namespace heddle {
namespace {

constexpr std::array kSettings = {
#define SETTING(name, values, meaning) Setting{name, values, meaning},
    HEDDLE_SETTINGS(SETTING)
#undef SETTING
};

/// Levenshtein's distance: how many letters to change, add or drop.
size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t above = row[j];
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

}  // namespace

std::span<const Setting> settings() {
    return kSettings;
}

std::string setting(std::string_view name) {
    if (std::ranges::find(kSettings, name, &Setting::name) == kSettings.end())
        throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no setting {}", name));
    const char* value = std::getenv(std::string(name).c_str());
    return value == nullptr ? "" : value;
}

std::vector<std::string> unknown_settings() {
    std::vector<std::string> lines;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view pair = *entry;
        if (!pair.starts_with("HEDDLE_")) continue;
        const std::string_view name = pair.substr(0, pair.find('='));
        if (std::ranges::find(kSettings, name, &Setting::name) != kSettings.end()) continue;
        const auto nearest = std::ranges::min_element(
            kSettings, {}, [&](const Setting& known) { return edit_distance(known.name, name); });
        lines.push_back(fmt::format("{} is not a variable of heddle and is ignored; did you mean {}?", name,
                                    nearest->name));
    }
    return lines;
}

}  // namespace heddle
