// ImageShape: what makes a buffer a two-dimensional image, which kernels read with samplers and write by
// coordinates (OpenCL's image2d_t).
//
//     const auto photo = std::make_shared<Buffer>(pixels, ImageShape{.width = 640, .height = 480}, "photo");
//     task->add_kernel("sharpen").arg(0, in(photo)).arg(1, out(sharp)).work(640, 480);
#pragma once

#include <cstddef>
#include <string>

#include "heddle/export.hpp"

namespace heddle::devices {

enum class ImageChannels { kR, kRg, kRgba, kBgra };

/// Of each channel. Kernels see kUnorm* as floats from 0 to 1.
enum class ImageType { kUnorm8, kUnorm16, kInt8, kInt16, kInt32, kUint8, kUint16, kUint32, kHalf, kFloat };

/// In memory: rows of pixels, top first, without gaps.
struct HEDDLE_API ImageShape {
    size_t width = 0;  ///< in pixels
    size_t height = 0;
    ImageChannels channels = ImageChannels::kRgba;
    ImageType type = ImageType::kUnorm8;

    [[nodiscard]] size_t pixel_bytes() const noexcept;
    /// Throws Error kInvalidArgument for no pixels, or more than there can be.
    [[nodiscard]] size_t bytes() const;
    /// "640 x 480 pixels of rgba unorm8".
    [[nodiscard]] std::string text() const;
};

}  // namespace heddle::devices
