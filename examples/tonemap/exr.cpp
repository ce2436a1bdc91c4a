// OpenEXR's files, by its library.
#include <OpenEXR/ImfRgbaFile.h>
#include <fmt/format.h>

#include <stdexcept>

#include "tonemap/picture.hpp"

namespace tonemap {
namespace {

HdrPicture read_exr(const std::string& path) {
    try {
        Imf::RgbaInputFile file(path.c_str());
        const auto window = file.dataWindow();
        HdrPicture picture;
        picture.width = static_cast<size_t>(window.max.x - window.min.x + 1);
        picture.height = static_cast<size_t>(window.max.y - window.min.y + 1);
        std::vector<Imf::Rgba> row(picture.width);
        picture.pixels.reserve(picture.width * picture.height);
        for (int y = window.min.y; y <= window.max.y; ++y) {
            file.setFrameBuffer(
                row.data() - window.min.x - static_cast<ptrdiff_t>(y) * static_cast<ptrdiff_t>(picture.width),
                1, picture.width);
            file.readPixels(y);
            for (const Imf::Rgba& pixel : row)
                picture.pixels.push_back({static_cast<float>(pixel.r), static_cast<float>(pixel.g),
                                          static_cast<float>(pixel.b), 0});
        }
        return picture;
    } catch (const std::exception& error) {
        throw std::runtime_error(fmt::format("{}: {}", path, error.what()));
    }
}

const bool exr_is_known = add_reader(".exr", read_exr);

}  // namespace
}  // namespace tonemap
