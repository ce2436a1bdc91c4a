// Bytes that look like nothing, always the same for a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace heddle::test {

[[nodiscard]] inline std::vector<std::byte> noise(size_t size, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> bytes(size);
    for (std::byte& one : bytes) one = static_cast<std::byte>(random());
    return bytes;
}

}  // namespace heddle::test
