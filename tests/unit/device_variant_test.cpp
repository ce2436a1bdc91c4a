// Tasks of the unified API that have a kernel beside their function.
#include "heddle/device_variant.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "heddle/await.hpp"
#include "heddle/pause.hpp"
#include "support/device_programs.hpp"
#include "support/engines.hpp"
#include "support/temporary_folder.hpp"

namespace heddle::devices {
namespace {

using test::add;
using test::failure;
using test::integer_program;
using test::kBothKeepings;
using test::simulated;
using ::testing::Each;
using ::testing::HasSubstr;

class EachNumberOfCpus : public ::testing::TestWithParam<std::tuple<unsigned, Keeping>> {};
INSTANTIATE_TEST_SUITE_P(DeviceVariants, EachNumberOfCpus,
                         ::testing::Combine(::testing::Values(0u, 1u, 2u),
                                            ::testing::ValuesIn(kBothKeepings)));

TEST_P(EachNumberOfCpus, DataPassBetweenFunctionsAndKernelsInTheOrderOfTheTasks) {
    const auto [on_cpu, keeping] = GetParam();
    TaskDevices devices(on_cpu, simulated(test::two_simulated()), keeping);
    const auto program = std::make_shared<Program>(devices.runtime(), integer_program());
    Runtime runtime;
    Vector<int> data(runtime, 1000);
    Sequence sequence(runtime);
    for (int i = 0; i < 50; ++i) {
        devices.insert(sequence, {program, "add", {1000}}, add, inout(data), value(i));
        sequence.insert([](std::span<int> own) { own[0] += 1; }, inout(data));
    }
    sequence.wait();
    std::vector<int> expected(1000, 49 * 50 / 2);
    expected[0] += 50;
    EXPECT_THAT(data.get(), ::testing::ElementsAreArray(expected));
    uint64_t ran = 0;
    for (const Device& device : devices.runtime().devices()) ran += device.tasks_run();
    EXPECT_EQ(ran, 50u);
}

TEST(DeviceVariants, TheSchedulerChoosesByWhatTheyTake) {
    // The device takes next to nothing by its own clock, the CPU an hour by its score.
    TaskDevices devices(1, simulated({{.name = "fast", .type = DeviceType::kGpu}}, "pams"));
    const auto program = std::make_shared<Program>(devices.runtime(), integer_program());
    Runtime runtime;
    Vector<int> data(runtime, 100);
    Sequence sequence(runtime);
    std::atomic<int> on_cpu{0};
    for (int i = 0; i < 20; ++i) {
        DeviceVariant variant{program, "add", {100}};
        variant.score = {3600e6, 1e-3, 1e-3};
        devices.insert(
            sequence, variant,
            [&](std::span<int> own, int by) {
                ++on_cpu;
                add(own, by);
            },
            inout(data), value(1));
    }
    sequence.wait();
    EXPECT_EQ(on_cpu, 0);
    EXPECT_THAT(data.get(), Each(20));
}

/// What is said of a matrix whose columns do not follow each other. It and its runtime go before the devices.
std::string refusal_of_gaps(TaskDevices& devices) {
    const auto program = std::make_shared<Program>(devices.runtime(), integer_program());
    Runtime runtime;
    std::vector<int> memory(12);
    Matrix<int> gaps(runtime, MatrixView<int>{memory.data(), 3, 3, 4});
    Sequence sequence(runtime);
    devices.insert(
        sequence, {program, "fill", {9}}, [](MatrixView<int>, int) {}, out(gaps), value(1));
    return failure([&] { sequence.wait(); });
}

TEST(DeviceVariants, WhatFailsFailsTheTask) {
    TaskDevices on_cpu(1, simulated({}));
    const auto program = std::make_shared<Program>(on_cpu.runtime(), integer_program());
    Runtime runtime;
    Vector<int> data(runtime, 100);
    Sequence sequence(runtime);
    on_cpu.insert(
        sequence, {program, "add", {100}},
        [](std::span<int>, int) { throw Error(ErrorCode::kBadInput, "no such thing"); }, inout(data),
        value(1));
    EXPECT_THAT(failure([&] { sequence.wait(); }), HasSubstr("no such thing"));

    TaskDevices mortal(0, simulated({{.name = "mortal", .fails_at_launch = 1}}));
    const auto other = std::make_shared<Program>(mortal.runtime(), integer_program());
    Sequence second(runtime);
    mortal.insert(second, {other, "add", {100}}, add, inout(data), value(1));
    EXPECT_THAT(failure([&] { second.wait(); }), HasSubstr("mortal failed at launch 1"));
    EXPECT_THAT(refusal_of_gaps(on_cpu), HasSubstr("without a gap"));
}

TEST(DeviceVariants, DevicesMayGoAfterTheDataThatTheyRefused) {
    TaskDevices far(0, simulated({{.name = "far"}}));
    EXPECT_THAT(refusal_of_gaps(far), HasSubstr("without a gap"));
}

TEST(DeviceVariants, ADeviceThatDiesLeavesItsTasksToTheCpu) {
    TaskDevices devices(1, simulated({{.name = "mortal", .fails_at_launch = 3}}));
    const auto program = std::make_shared<Program>(devices.runtime(), integer_program());
    Runtime runtime;
    Vector<int> data(runtime, 100);
    Sequence sequence(runtime);
    for (int i = 0; i < 30; ++i)
        devices.insert(sequence, {program, "add", {100}}, add, inout(data), value(1));
    sequence.wait();
    EXPECT_THAT(data.get(), Each(30));
}

TEST(DeviceVariants, OneWorkerIsEnoughForManyThatWait) {
    TaskDevices devices(1, simulated(test::two_simulated()));
    const auto program = std::make_shared<Program>(devices.runtime(), integer_program());
    RuntimeOptions options;
    options.workers = 1;
    Runtime runtime(options);
    std::vector<Vector<int>> data;
    for (int i = 0; i < 40; ++i) data.emplace_back(runtime, 100);
    Sequence sequence(runtime);
    for (int round = 0; round < 5; ++round)
        for (Vector<int>& one : data)
            devices.insert(sequence, {program, "add", {100}}, add, inout(one), value(2));
    sequence.wait();
    for (Vector<int>& one : data) EXPECT_THAT(one.get(), Each(10));
}

class AFunctionThatWaits : public heddle::test::OnEachEngine {};
INSTANTIATE_TEST_SUITE_P(DeviceVariants, AFunctionThatWaits, heddle::test::engines(),
                         heddle::test::engine_name);

/// There is one, and each function waits for two more that need it.
TEST_P(AFunctionThatWaits, GivesItsPlaceToThoseThatItWaitsFor) {
    for (const int workers : {1, 2}) {
        TaskDevices devices(1, simulated({}));
        const auto program = std::make_shared<Program>(devices.runtime(), integer_program());
        Runtime runtime(options(workers));
        std::atomic<int> ran{0};
        const std::function<void(int)> insert_two = [&](int deeper) {
            Vector<int> data[] = {{runtime, 100}, {runtime, 100}};
            Sequence sequence(runtime);
            for (Vector<int>& one : data)
                devices.insert(
                    sequence, {program, "add", {100}},
                    [&, deeper](std::span<int> own, int by) {
                        if (deeper > 0) insert_two(deeper - 1);
                        add(own, by);
                        ++ran;
                    },
                    inout(one), value(1));
            sequence.wait();
            for (Vector<int>& one : data) EXPECT_THAT(one.get(), Each(1));
        };
        insert_two(3);
        EXPECT_EQ(ran, 2 + 4 + 8 + 16);
    }
}

TEST(DeviceVariants, AFunctionThatWaitsGivesItsPlaceToOthers) {
    TaskDevices devices(1, simulated({}));
    const auto program = std::make_shared<Program>(devices.runtime(), integer_program());
    Runtime runtime;
    Vector<int> one(runtime, 100), other(runtime, 100);
    BlockCondition condition;
    Sequence sequence(runtime);
    devices.insert(
        sequence, {program, "add", {100}}, [&](std::span<int>, int) { condition.block(); }, inout(one),
        value(1));
    devices.insert(
        sequence, {program, "add", {100}}, [&](std::span<int>, int) { condition.signal(); }, inout(other),
        value(1));
    sequence.wait();
}

TEST(DeviceVariants, WhatAFunctionTakesThatWaitsIsNotLearned) {
    const heddle::test::TemporaryFolder folder;
    DeviceOptions options = simulated({});
    options.costs_file = folder.path() + "/costs";
    {
        TaskDevices devices(1, options);
        const auto program = std::make_shared<Program>(devices.runtime(), integer_program());
        Runtime runtime;
        Vector<int> data(runtime, 100);
        Sequence sequence(runtime);
        for (const int waits_ms : {0, 1})
            devices.insert(
                sequence, {program, waits_ms == 0 ? "add" : "multiply", {100}},
                [waits_ms](std::span<int>, int) {
                    if (waits_ms > 0) sleep_for(std::chrono::milliseconds(waits_ms));
                },
                inout(data), value(1));
        sequence.wait();
    }
    std::ifstream file(options.costs_file);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(std::ranges::count(text, '\t'), 2) << "one line, of device, kernel and times:\n" << text;
}

/// Nothing compiles there, so nobody tells the names of kernels.
TEST(DeviceVariants, TheCpuIsEnoughForAnySource) {
    TaskDevices devices(1, simulated({}));
    for (const ProgramSource& source :
         {ProgramSource{.cuda = "extern \"C\" __global__ void add(int* data, int by) {}"},
          ProgramSource{.opencl =
                            "__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void\nadd(int by) {}"},
          ProgramSource{.opencl = "#define EACH(name) kernel void name(global int* data)\nEACH(add) {}"}}) {
        const auto program = std::make_shared<Program>(devices.runtime(), source);
        Runtime runtime;
        Vector<int> data(runtime, 100);
        Sequence sequence(runtime);
        devices.insert(sequence, {program, "add", {100}}, add, inout(data), value(1));
        sequence.wait();
        EXPECT_THAT(data.get(), Each(1));
        DeviceTask task(program);
        EXPECT_THAT(failure([&] { task.add_kernel("ad"); }), HasSubstr("has no kernel \"ad\": it has none"));
    }
    EXPECT_THAT(failure([&] { Program nothing(devices.runtime(), {}); }), HasSubstr("no device has built"));
}

/// The device has one kernel of the program, the CPU both.
TEST(DeviceVariants, AKernelThatADeviceLacksDoesNotRunThere) {
    TaskDevices devices(1, simulated({{.name = "device"}}));
    ProgramSource source = integer_program();
    source.host.erase("add");
    const auto program = std::make_shared<Program>(devices.runtime(), source);
    DeviceTask task(program);
    task.add_kernel("fill");
    for (const Device& device : devices.runtime().devices()) EXPECT_TRUE(task.runs_on(device));
    task.add_kernel("add");
    for (const Device& device : devices.runtime().devices())
        EXPECT_EQ(task.runs_on(device), device.info().kind == "host");
    Runtime runtime;
    Vector<int> data(runtime, 100);
    Sequence sequence(runtime);
    for (int i = 0; i < 20; ++i)
        devices.insert(sequence, {program, "add", {100}}, add, inout(data), value(1));
    sequence.wait();
    EXPECT_THAT(data.get(), Each(20));
}

}  // namespace
}  // namespace heddle::devices
