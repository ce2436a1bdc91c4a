// Grey pictures as PGM files (binary, P5), which GraphicsMagick and others make of any picture and read:
//
//     gm convert picture.png -resize 800 picture.pgm
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace heddle::example {

struct GreyMap {
    size_t rows = 0, columns = 0;
    /// From 0, black, to 1, white; row after row.
    std::vector<double> values;
};

/// Throws std::runtime_error with the file's name and what is wrong.
[[nodiscard]] GreyMap read_grey_map(const std::string& path);
/// In 256 shades.
void write_grey_map(const std::string& path, const GreyMap& map);

}  // namespace heddle::example
