// Random programs over buffers that tasks read and write in parts on devices with and without memory of their
// own give what they give one after the other.
#include <gtest/gtest.h>

#include "devices/range_map.hpp"
#include "support/random_program.hpp"
#include "support/sanitized.hpp"

namespace heddle::devices {
namespace {

DeviceOptions near_and_far(unsigned seed) {
    return {.kinds = {},
            .simulated = {{.name = "far", .type = DeviceType::kGpu, .us_per_byte = 1e-3},
                          {.name = "farther", .type = DeviceType::kGpu, .us_per_byte = 1e-2},
                          {.name = "near", .shares_host_memory = true}},
            .scheduler = make_scheduler(seed % 3 == 0   ? "fcfs"
                                        : seed % 3 == 1 ? "heft"
                                                        : "pams")};
}

TEST(DeviceCoherence, RandomProgramsGiveWhatTheyGiveInOrder) {
    for (unsigned seed = 0; seed < (heddle::test::kSanitized ? 5U : 50U); ++seed) {
        SCOPED_TRACE(seed);
        test::RandomProgram program(seed, near_and_far(seed), test::integer_program());
        program.run(1000);
        if (HasFatalFailure()) return;
    }
}

TEST(RangeMap, PiecesAreSplitAndJoined) {
    RangeMap<int> map(100, 0);
    const auto set = [&](size_t offset, size_t size, int value) {
        map.visit(offset, size, [&](size_t, size_t, int& one) { one = value; });
        map.join(offset, size);
    };
    set(10, 20, 1);
    EXPECT_EQ(map.pieces(), 3u);
    set(30, 70, 1);
    EXPECT_EQ(map.pieces(), 2u);
    set(0, 100, 0);
    EXPECT_EQ(map.pieces(), 1u);
    size_t covered = 0;
    set(50, 1, 2);
    map.visit(40, 20, [&](size_t offset, size_t size, int value) {
        EXPECT_EQ(value, offset == 50 ? 2 : 0);
        covered += size;
    });
    EXPECT_EQ(covered, 20u);
}

}  // namespace
}  // namespace heddle::devices
