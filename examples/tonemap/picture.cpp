#include "tonemap/picture.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <stdexcept>

namespace tonemap {
namespace {

std::map<std::string, Reader>& readers() {
    static std::map<std::string, Reader> all;
    return all;
}

void mend(HdrPicture& picture) {
    float greatest = 0;
    for (const auto& pixel : picture.pixels)
        for (size_t i = 0; i < 3; ++i)
            if (std::isfinite(pixel[i])) greatest = std::max(greatest, pixel[i]);
    for (auto& pixel : picture.pixels)
        for (size_t i = 0; i < 3; ++i) {
            if (std::isfinite(pixel[i]) && pixel[i] >= 0) continue;
            pixel[i] = pixel[i] > 0 ? greatest : 0;
            ++picture.mended;
        }
}

}  // namespace

bool add_reader(const std::string& ending, Reader reader) {
    return readers().emplace(ending, std::move(reader)).second;
}

std::vector<std::string> readable_endings() {
    std::vector<std::string> all;
    for (const auto& [ending, reader] : readers()) all.push_back(ending);
    return all;
}

HdrPicture read_hdr_picture(const std::string& path) {
    const std::string ending = std::filesystem::path(path).extension();
    const auto reader = readers().find(ending);
    if (reader == readers().end())
        throw std::runtime_error(
            fmt::format("{}: this program reads {} (.exr where it was built with libopenexr-dev)", path,
                        fmt::join(readable_endings(), ", ")));
    HdrPicture picture = reader->second(path);
    mend(picture);
    return picture;
}

}  // namespace tonemap
