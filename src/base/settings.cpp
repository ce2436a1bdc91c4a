#include "base/settings.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/edit_distance.h"
#include "base/settings_table.h"
#include "heddle/error.hpp"

namespace heddle {
namespace {

constexpr std::array kSettings = {
#define SETTING(name, values, meaning) Setting{name, values, meaning},
    HEDDLE_SETTINGS(SETTING)
#undef SETTING
};

/// Of all their names.
constexpr std::string_view kPrefix = "HEDDLE_";

size_t distance(std::string_view a, std::string_view b) {
    return heddle_edit_distance(a.data(), a.size(), b.data(), b.size());
}

}  // namespace

std::span<const Setting> settings() {
    return kSettings;
}

std::string setting(std::string_view name) {
    if (std::ranges::find(kSettings, name, &Setting::name) == kSettings.end())
        throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no setting {}", name));
    const char* value = ::secure_getenv(std::string(name).c_str());
    return value == nullptr ? "" : value;
}

std::vector<std::string> unknown_settings() {
    std::vector<std::string> lines;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view pair = *entry;
        if (!pair.starts_with(kPrefix)) continue;
        const std::string_view name = pair.substr(0, pair.find('='));
        if (std::ranges::find(kSettings, name, &Setting::name) != kSettings.end()) continue;
        const auto nearest = std::ranges::min_element(
            kSettings, {}, [&](const Setting& known) { return distance(known.name, name); });
        const bool misspelt =
            heddle_is_misspelling(name.size() - kPrefix.size(), distance(nearest->name, name));
        lines.push_back(fmt::format(
            "{} is not a variable of heddle and is ignored; {}", name,
            misspelt ? fmt::format("did you mean {}?", nearest->name) : "heddle(1) lists those that are"));
    }
    return lines;
}

std::vector<std::string> untold_settings() {
    static std::atomic<bool> told{false};
    return told.exchange(true) ? std::vector<std::string>() : unknown_settings();
}

}  // namespace heddle
