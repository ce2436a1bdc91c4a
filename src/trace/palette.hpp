// Palette: one colour for each client, the same in every picture of a trace.
//
// Pure functions. A colour depends only on the client's place in the order of joining, so that it stays the
// same however the trace goes on. The first twelve are chosen to differ also for colour-blind readers, on
// light and dark backgrounds; later ones are spread over the hues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace heddle::trace {

struct Color {
    uint8_t red = 0;
    uint8_t green = 0;
    uint8_t blue = 0;

    [[nodiscard]] std::string hex() const;
    /// Whether dark text is easier to read on it than white text.
    [[nodiscard]] bool light() const;
    /// The nearest of the 216 colours of a terminal's colour cube (16..231).
    [[nodiscard]] int terminal() const;
};

[[nodiscard]] Color color_of(size_t client);

}  // namespace heddle::trace
