// Random programs over buffers that tasks read and write in parts on devices with and without memory of their
// own give what they give one after the other.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "devices/range_map.hpp"
#include "support/device_programs.hpp"
#include "support/random_program.hpp"
#include "support/sanitized.hpp"

namespace heddle::devices {
namespace {

/// Every other time the far ones copy from each other.
DeviceOptions near_and_far(unsigned seed) {
    const bool straight = seed % 2 == 1;
    return {.kinds = {},
            .simulated =
                {{.name = "far", .type = DeviceType::kGpu, .us_per_byte = 1e-3, .peer_access = straight},
                 {.name = "farther", .type = DeviceType::kGpu, .us_per_byte = 1e-2, .peer_access = straight},
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

/// What another runtime has left on its device is fetched when that is looked for, and not over what a kernel
/// writes.
TEST(DeviceCoherence, WhatIsFetchedFromAGoneRuntimeIsNotWrittenOverAKernelsResult) {
    const auto options = [](std::vector<SimulatedDevice> devices) {
        return DeviceOptions{.kinds = {}, .simulated = std::move(devices)};
    };
    const size_t half = 100 * sizeof(int);
    const auto buffer = std::make_shared<Buffer>(2 * half);
    DeviceRuntime here(options({{.name = "near", .shares_host_memory = true}, {.name = "far"}}));
    const auto program = std::make_shared<Program>(here, test::integer_program());
    const auto on = [&](unsigned device, const char* kernel, const Access& access, int value) {
        auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel(kernel).arg(0, access).arg(1, value).work(100).offset(access.range.offset /
                                                                               sizeof(int));
        task->only_on(here.devices()[device]);
        return task;
    };
    here.submit(on(0, "fill", out(buffer, {0, half}), 1));
    here.finish();
    {
        DeviceRuntime gone(options({{.name = "gone"}}));
        auto task = std::make_shared<DeviceTask>(std::make_shared<Program>(gone, test::integer_program()));
        task->add_kernel("fill").arg(0, out(buffer, {0, half})).arg(1, 5).work(100);
        gone.submit(task);
        gone.finish();
    }
    // One worker serves both devices: what the second needs is got before the first one's end is told.
    const std::vector<TaskPointer> both{on(0, "fill", out(buffer, {0, half}), 7),
                                        on(1, "add", inout(buffer, {half, half}), 1)};
    here.submit(both);
    here.finish();
    std::vector<int> values(200);
    buffer->read(values.data(), buffer->size());
    EXPECT_EQ(values[0], 7);
    EXPECT_EQ(values[99], 7);
    EXPECT_EQ(values[100], 1);
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
