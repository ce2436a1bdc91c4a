#include <fmt/format.h>

#include <array>

#include "heddle/device_image.hpp"
#include "heddle/error.hpp"

namespace heddle::devices {
namespace {

struct Part {
    const char* name;
    size_t count;  // of channels, or of bytes
};

Part part_of(ImageChannels channels) {
    static constexpr std::array<Part, 4> kAll{{{"r", 1}, {"rg", 2}, {"rgba", 4}, {"bgra", 4}}};
    return kAll.at(static_cast<size_t>(channels));
}

Part part_of(ImageType type) {
    static constexpr std::array<Part, 10> kAll{{{"unorm8", 1},
                                                {"unorm16", 2},
                                                {"int8", 1},
                                                {"int16", 2},
                                                {"int32", 4},
                                                {"uint8", 1},
                                                {"uint16", 2},
                                                {"uint32", 4},
                                                {"half", 2},
                                                {"float", 4}}};
    return kAll.at(static_cast<size_t>(type));
}

}  // namespace

size_t ImageShape::pixel_bytes() const noexcept {
    return part_of(channels).count * part_of(type).count;
}

size_t ImageShape::bytes() const {
    constexpr size_t kMostBytes = size_t{1} << 48;
    if (width == 0 || height == 0 || width > kMostBytes / height ||
        width * height > kMostBytes / pixel_bytes())
        throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no image of {}", text()));
    return width * height * pixel_bytes();
}

std::string ImageShape::text() const {
    return fmt::format("{} x {} pixels of {} {}", width, height, part_of(channels).name, part_of(type).name);
}

}  // namespace heddle::devices
