// Sizes and offsets in bytes, as people write them on a command line.
#pragma once

#include <cstdint>
#include <string>

namespace heddle::tool {

/// 4096, 64K, 10M or 2G. Throws UsageError.
[[nodiscard]] uint64_t byte_size(const std::string& text);

}  // namespace heddle::tool
