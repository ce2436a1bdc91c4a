// CRC32C (Castagnoli), by the processor's instruction where it has one, else by Boost.CRC's table. Any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace heddle {

[[nodiscard]] uint32_t crc32c(std::span<const std::byte> content);
/// The same without the instruction.
[[nodiscard]] uint32_t crc32c_by_table(std::span<const std::byte> content);

}  // namespace heddle
