#include "trace/palette.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace heddle::trace {
namespace {

constexpr std::array<Color, 12> kChosen = {{
    {0x2f, 0x74, 0xd0},
    {0xf0, 0x8c, 0x2e},
    {0x2a, 0x9d, 0x5c},
    {0xc2, 0x4f, 0x9a},
    {0x3f, 0xb4, 0xc8},
    {0xd6, 0x45, 0x45},
    {0x7d, 0x5f, 0xc9},
    {0xc9, 0xa2, 0x27},
    {0x8c, 0x5a, 0x3c},
    {0x7c, 0xa8, 0x2f},
    {0xe5, 0x8f, 0xb0},
    {0x4a, 0x5a, 0x8f},
}};

uint8_t channel(double value) {
    return static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
}

Color from_hue(double hue, double saturation, double lightness) {
    const double strength = saturation * std::min(lightness, 1 - lightness);
    const auto part = [&](double n) {
        const double k = std::fmod(n + hue * 12, 12);
        return channel(lightness - strength * std::max(-1.0, std::min({k - 3, 9 - k, 1.0})));
    };
    return {part(0), part(8), part(4)};
}

}  // namespace

std::string Color::hex() const {
    return fmt::format("#{:02x}{:02x}{:02x}", red, green, blue);
}

bool Color::light() const {
    return 0.299 * red + 0.587 * green + 0.114 * blue > 150;
}

int Color::terminal() const {
    const auto level = [](uint8_t value) { return value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40; };
    return 16 + 36 * level(red) + 6 * level(green) + level(blue);
}

Color color_of(size_t client) {
    if (client < kChosen.size()) return kChosen[client];
    // Steps of the golden ratio never come near an earlier hue for long.
    const auto extra = static_cast<double>(client - kChosen.size());
    const double hue = std::fmod(0.08 + extra * 0.6180339887498949, 1);
    return from_hue(hue, 0.5, client % 2 == 0 ? 0.42 : 0.62);
}

}  // namespace heddle::trace
