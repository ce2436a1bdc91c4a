// A page with a picture as a screen would cut it off, as a plain loop maps it and as devices did, and with
// who did what when.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/device.hpp"
#include "tonemap/picture.hpp"

namespace tonemap {

/// HTML, a file of its own. Tasks have ended. Throws std::runtime_error where it cannot be written.
void write_comparison(const std::string& path, const HdrPicture& light, const Picture& plain,
                      const Picture& devices_picture, const std::vector<heddle::devices::TaskPointer>& tasks,
                      std::span<const heddle::devices::Device> devices);

}  // namespace tonemap
