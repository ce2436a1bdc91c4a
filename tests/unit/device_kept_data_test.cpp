// What devices keep of the data of tasks that have a kernel beside their function, from one task to the next.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "heddle/device_variant.hpp"
#include "support/device_programs.hpp"
#include "support/wait_until.hpp"

namespace heddle::devices {
namespace {

using test::add;
using test::failure;
using test::integer_program;
using test::kBothKeepings;
using test::simulated;
using ::testing::Each;
using ::testing::HasSubstr;

/// Two data, ten tasks, and two copies to the device: the third one would kill it.
TEST(KeptData, WhatADeviceHasIsNotSentOnceMore) {
    for (const Keeping keeping : kBothKeepings) {
        TaskDevices devices(0, simulated({{.name = "device", .fails_at_copy = 3}}), keeping);
        const auto program = std::make_shared<Program>(devices.runtime(), integer_program());
        Runtime runtime;
        Vector<int> read(runtime, 100), changed(runtime, 100);
        for (int& one : read.get()) one = 5;
        Sequence sequence(runtime);
        for (int i = 0; i < 5; ++i) {
            devices.insert(sequence, {program, "add", {100}}, add, inout(changed), value(1));
            devices.insert(
                sequence, {program, "copy", {100}}, [](std::span<const int>, std::span<int>) {}, in(read),
                inout(changed));
            sequence.insert([](std::span<const int> seen) { EXPECT_THAT(seen, Each(5)); }, in(changed));
            sequence.insert([](std::span<const int>) {}, in(read));
        }
        sequence.wait();
        EXPECT_THAT(changed.get(), Each(5));
    }
}

/// Each of these makes what the device has stale.
TEST(KeptData, WhatOthersWriteIsSent) {
    for (const Keeping keeping : kBothKeepings) {
        TaskDevices devices(0, simulated({{.name = "device"}}), keeping);
        const auto program = std::make_shared<Program>(devices.runtime(), integer_program());
        Runtime runtime;
        std::vector<int> memory(100, 1);
        {
            Vector<int> data(runtime, std::span<int>(memory));
            const auto on_device = [&](Sequence& sequence) {
                devices.insert(sequence, {program, "add", {100}}, add, inout(data), value(1));
            };
            Sequence sequence(runtime);
            on_device(sequence);
            sequence.wait();
            EXPECT_THAT(memory, Each(2)) << "a sequence's wait";
            memory.assign(100, 10);  // the program itself, which has waited
            on_device(sequence);
            sequence.insert([](std::span<int> all) { std::ranges::fill(all, all[0] * 2); }, inout(data));
            on_device(sequence);
            sequence.insert([](std::span<int> all) { std::ranges::fill(all, 30); }, out(data));
            on_device(sequence);
            sequence.insert([](std::span<int> all) { add(all, 1); }, commute(data));
            on_device(sequence);
            sequence.insert([](std::span<int> all) { add(all, 1); }, redux(data));
            on_device(sequence);
            data.wait();
            EXPECT_THAT(memory, Each(35)) << "the datum's";
            memory.assign(100, 7);
            on_device(sequence);
            runtime.wait();
            EXPECT_THAT(memory, Each(8)) << "the runtime's";
            sequence.insert(
                [&](std::span<int>) {
                    Sequence inner(runtime);
                    on_device(inner);
                    on_device(inner);
                    inner.wait();
                    EXPECT_EQ(memory[0], 10) << "of children";
                    memory[0] = 20;
                    on_device(inner);
                },
                inout(data));
            on_device(sequence);
        }
        EXPECT_EQ(memory[0], 22) << "the end of the datum";
        EXPECT_EQ(memory[1], 12);
    }
}

TEST(KeptData, TheEndOfWhoKeepsThemBringsThemHome) {
    Runtime runtime;
    Vector<int> data(runtime, 100), other(runtime, 100);
    Sequence sequence(runtime);
    for (int i = 0; i < 3; ++i) {
        TaskDevices first(0, simulated({{.name = "one"}}), Keeping::kResults);
        TaskDevices second(0, simulated({{.name = "other"}}), Keeping::kResults);
        for (int k = 0; k < 4; ++k)
            for (TaskDevices* devices : {&first, &second}) {
                const auto program = std::make_shared<Program>(devices->runtime(), integer_program());
                devices->insert(sequence, {program, "add", {100}}, add, inout(data), value(1));
                devices->insert(
                    sequence, {program, "copy", {100}}, [](std::span<const int>, std::span<int>) {}, in(data),
                    out(other));
            }
        other.wait();  // they have ended, and nobody has asked for `data`
    }
    sequence.insert([](std::span<const int> seen) { EXPECT_THAT(seen, Each(24)); }, in(data));
    sequence.wait();
    EXPECT_THAT(data.get(), Each(24));
}

TEST(KeptData, ADeviceThatDiesTakesResultsAlongAndCopiesNot) {
    for (const Keeping keeping : kBothKeepings) {
        TaskDevices devices(1, simulated({{.name = "mortal", .fails_at_launch = 3}}, "heft"), keeping);
        const auto program = std::make_shared<Program>(devices.runtime(), integer_program());
        Runtime runtime;
        Vector<int> data(runtime, 100), other(runtime, 100);
        DeviceVariant variant{program, "add", {100}};
        variant.score = {3600e6, 1e-3, 1e-3};
        Sequence sequence(runtime), second(runtime);
        for (int i = 0; i < 3; ++i) devices.insert(sequence, variant, add, inout(data), value(1));
        if (keeping == Keeping::kCopies) {
            sequence.wait();
            EXPECT_THAT(data.get(), Each(3));
        } else {
            EXPECT_THAT(
                failure([&] { sequence.wait(); }),
                HasSubstr("of buffer \"data of a task\" are lost: only mortal, which failed, had them"));
        }
        for (int i = 0; i < 3; ++i) devices.insert(second, variant, add, inout(other), value(1));
        second.wait();
        EXPECT_THAT(other.get(), Each(3)) << "others are as they were";
    }
}

/// Those of a function that has the data on the CPU, and waits for them.
TEST(KeptData, ChildrenUseWhatTheirParentHas) {
    for (const Keeping keeping : kBothKeepings) {
        TaskDevices devices(1, simulated({{.name = "device", .type = DeviceType::kGpu}}, "heft"), keeping);
        const auto program = std::make_shared<Program>(devices.runtime(), integer_program());
        Runtime runtime;
        Vector<int> data(runtime, 100);
        Sequence sequence(runtime);
        DeviceVariant on_device{program, "add", {100}}, on_cpu = on_device;
        on_device.score = {3600e6, 1e-3, 1e-3};
        on_cpu.score = {1e-3, 3600e6, 3600e6};
        on_cpu.kernel = "multiply";
        devices.insert(sequence, on_device, add, inout(data), value(1));
        devices.insert(
            sequence, on_cpu,
            [&](std::span<int> own, int) {
                EXPECT_THAT(own, Each(1));
                Sequence inner(runtime);
                devices.insert(inner, on_device, add, inout(data), value(1));
                inner.wait();
                EXPECT_THAT(own, Each(2));
                add(own, 1);
            },
            inout(data), value(1));
        devices.insert(sequence, on_device, add, inout(data), value(1));
        sequence.wait();
        EXPECT_THAT(data.get(), Each(4));
    }
}

/// The device dies of another task.
TEST(KeptData, WhatIsLostIsToldToWhoAsksForItAndOnceToOthers) {
    TaskDevices devices(1, simulated({{.name = "mortal", .fails_at_launch = 2}}, "heft"), Keeping::kResults);
    const auto program = std::make_shared<Program>(devices.runtime(), integer_program());
    Runtime runtime;
    Vector<int> data(runtime, 100), other(runtime, 100);
    DeviceVariant variant{program, "add", {100}};
    variant.score = {3600e6, 1e-3, 1e-3};
    Sequence sequence(runtime), reading(runtime);
    Scalar<int> seen(runtime);
    const auto lost = HasSubstr("are lost: only mortal, which failed, had them");
    devices.insert(sequence, variant, add, inout(data), value(1));
    ASSERT_TRUE(heddle::test::becomes_true([&] { return devices.runtime().devices()[0].tasks_run() == 1; }));
    devices.insert(
        sequence, {program, "copy", {100}, {0, 0, 0}, variant.score},
        [](std::span<const int>, std::span<int> to) { std::ranges::fill(to, 3); }, in(other), out(other));
    EXPECT_THAT(failure([&] { sequence.wait(); }), lost);
    sequence.wait();
    EXPECT_THAT(failure([&] { data.wait(); }), lost);
    EXPECT_THAT(failure([&] { data.wait(); }), lost);
    reading.insert([](std::span<const int>, int& to) { to = 1; }, in(data), out(seen));
    EXPECT_THAT(failure([&] { reading.wait(); }), lost);
    EXPECT_EQ(seen.get(), 0) << "it did not run";
    reading.insert([](std::span<int> all) { std::ranges::fill(all, 5); }, out(data));
    reading.wait();
    EXPECT_THAT(data.get(), Each(5));
    EXPECT_THAT(other.get(), Each(3));
}

TEST(KeptData, ATaskThatFailsLeavesNothingBehind) {
    TaskDevices devices(0, simulated({{.name = "device"}}), Keeping::kResults);
    ProgramSource source = integer_program();
    source.host["spoil"] = [](const HostArguments& arguments, const LaunchShape&) {
        arguments.buffer<int>(0)[0] = -1;
        throw Error(ErrorCode::kBadInput, "spoiled");
    };
    const auto program = std::make_shared<Program>(devices.runtime(), source);
    Runtime runtime;
    Vector<int> data(runtime, 100);
    Sequence sequence(runtime);
    devices.insert(
        sequence, {program, "spoil", {100}}, [](std::span<int>) {}, inout(data));
    EXPECT_THAT(failure([&] { sequence.wait(); }), HasSubstr("spoiled"));
    EXPECT_THAT(data.get(), Each(0));
    devices.insert(sequence, {program, "add", {100}}, add, inout(data), value(1));
    sequence.wait();
    EXPECT_THAT(data.get(), Each(1));
}

/// Half of the device's memory is for what is kept: four of the data, or two, and then the first one, used
/// again at the end, is sent once more.
TEST(KeptData, WhatIsUsedSeldomMakesRoom) {
    constexpr size_t kSize = 100;
    struct Case {
        size_t room;
        unsigned fails_at_copy;
        bool survives;
    };
    for (const Case& one : {Case{8, 5, true}, {5, 6, true}, {5, 5, false}}) {
        TaskDevices devices(0, simulated({{.name = "device",
                                           .fails_at_copy = one.fails_at_copy,
                                           .memory_bytes = one.room * kSize * sizeof(int)}}));
        const auto program = std::make_shared<Program>(devices.runtime(), integer_program());
        Runtime runtime;
        std::vector<Vector<int>> data;
        for (int i = 0; i < 4; ++i) data.emplace_back(runtime, kSize);
        Sequence sequence(runtime);
        Scalar<int> turn(runtime);
        for (const size_t which : {0u, 1u, 1u, 2u, 2u, 3u, 3u, 0u}) {
            devices.insert(sequence, {program, "add", {kSize}}, add, inout(data[which]), value(1));
            sequence.insert([](std::span<const int>, int&) {}, in(data[which]), inout(turn));
            turn.wait();
        }
        if (one.survives)
            sequence.wait();
        else
            EXPECT_THAT(failure([&] { sequence.wait(); }), HasSubstr("failed at copy 5"));
        EXPECT_THAT(data[0].get(), Each(one.survives ? 2 : 1));
    }
}

/// Against the same program without devices.
TEST(KeptData, RandomProgramsGiveTheSequentialResult) {
    constexpr size_t kSize = 16, kData = 5;
    for (unsigned seed = 0; seed < 40; ++seed) {
        std::mt19937 random(seed);
        const auto pick = [&](unsigned below) { return static_cast<unsigned>(random() % below); };
        TaskDevices devices(pick(3), simulated(test::two_simulated()), kBothKeepings[pick(2)]);
        const auto program = std::make_shared<Program>(devices.runtime(), integer_program());
        Runtime runtime;
        std::vector<Vector<int>> data;
        std::vector<std::vector<int>> expected(kData, std::vector<int>(kSize, 1));
        for (size_t i = 0; i < kData; ++i) {
            data.emplace_back(runtime, kSize);
            std::ranges::fill(data.back().get(), 1);
        }
        Sequence sequence(runtime);
        const auto copy = [](std::span<const int> from, std::span<int> to) {
            std::ranges::copy(from, to.begin());
        };
        for (int step = 0; step < 60; ++step) {
            const size_t a = pick(kData), b = (a + 1 + pick(kData - 1)) % kData;
            const int by = static_cast<int>(pick(5));
            switch (pick(6)) {
                case 0:
                    devices.insert(sequence, {program, "add", {kSize}}, add, inout(data[a]), value(by));
                    add(expected[a], by);
                    break;
                case 1:
                    devices.insert(sequence, {program, "copy", {kSize}}, copy, in(data[a]), out(data[b]));
                    expected[b] = expected[a];
                    break;
                case 2:
                    sequence.insert(copy, in(data[a]), out(data[b]));
                    expected[b] = expected[a];
                    break;
                case 3:
                    sequence.insert([by](std::span<int> all) { add(all, by); }, inout(data[a]));
                    add(expected[a], by);
                    break;
                case 4:
                    if (pick(4) > 0) break;
                    data[a].get()[0] += by;
                    expected[a][0] += by;
                    break;
                case 5:
                    if (pick(4) > 0) break;
                    sequence.wait();
                    EXPECT_THAT(data[a].get(), ::testing::ElementsAreArray(expected[a])) << seed;
                    data[b].get()[0] += by;
                    expected[b][0] += by;
                    break;
            }
        }
        for (size_t i = 0; i < kData; ++i)
            EXPECT_THAT(data[i].get(), ::testing::ElementsAreArray(expected[i])) << seed;
    }
}

}  // namespace
}  // namespace heddle::devices
