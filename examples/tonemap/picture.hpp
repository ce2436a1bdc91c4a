// Pictures in memory: of light, as Radiance .hdr and (where OpenEXR is there) .exr files have it, and of
// 8 bits a channel, as .png files have it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tonemap {

/// Row by row from the top; red, green, blue and a fourth value that is not used, so that devices find each
/// pixel at a multiple of 16 bytes.
struct HdrPicture {
    size_t width = 0;
    size_t height = 0;
    std::vector<std::array<float, 4>> pixels;
    /// So many values were negative, infinite or no numbers: they are 0 now, or the greatest there was.
    size_t mended = 0;
};

struct Picture {
    size_t width = 0;
    size_t height = 0;
    std::vector<std::array<uint8_t, 4>> pixels;  ///< red, green, blue, 255
};

/// By the name's ending. Throws std::runtime_error that names the file and what is wrong with it.
[[nodiscard]] HdrPicture read_hdr_picture(const std::string& path);
/// The bytes of a .png file.
[[nodiscard]] std::string png(const Picture& picture);
void write_png(const std::string& path, const Picture& picture);

/// Readers make themselves known before main().
using Reader = std::function<HdrPicture(const std::string& path)>;
bool add_reader(const std::string& ending, Reader reader);
/// As .png and so on.
[[nodiscard]] std::vector<std::string> readable_endings();

}  // namespace tonemap
