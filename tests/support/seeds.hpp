// Which seeds a test of random programs goes through: TEST_FIRST_SEED says the first, TEST_SEEDS how many.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace heddle::test {

struct Seeds {
    uint64_t first, count;
};

inline Seeds seeds(uint64_t count) {
    const auto or_else = [](const char* name, uint64_t otherwise) {
        const char* text = std::getenv(name);
        return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
    };
    return {or_else("TEST_FIRST_SEED", 0), or_else("TEST_SEEDS", count)};
}

}  // namespace heddle::test
