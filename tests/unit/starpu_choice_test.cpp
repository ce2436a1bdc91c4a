// Tasks of the unified API that StarPU itself places, on the CPU or on its OpenCL devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/temporary_folder.hpp"
#include "heddle/device_variant.hpp"
#include "heddle/pause.hpp"
#include "support/device_programs.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle::devices {
namespace {

using test::failure;
using test::integer_program;
using ::testing::Each;
using ::testing::HasSubstr;

/// StarPU is started once in a process: each of these tests wants one of its own, as ctest gives it.
class StarPuChoice : public ::testing::TestWithParam<unsigned> {
  protected:
    void SetUp() override {
        // Where it keeps what it measures of a machine with such devices: others have none.
        setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
        setenv("STARPU_OPENCL_ON_CPUS", "1", 1);
        // On a busy machine StarPU flushes what it has measured as soon as two samples differ by half,
        // and tries the first device again: sixty tasks may then end before it comes to a CPU.
        setenv("STARPU_HISTORY_MAX_ERROR", "1000000", 1);
        for (const DeviceInfo& info : list_devices())
            if (info.kind == "opencl" && !info.available) GTEST_SKIP() << "skipped: " << info.reason;
        for (const EngineInfo& engine : Runtime::engines())
            if (engine.name == "starpu" && !engine.available) GTEST_SKIP() << "skipped: " << engine.reason;
        devices_.emplace(GetParam());
        program_ = std::make_shared<Program>(devices_->runtime(), integer_program());
        runtime_.emplace(RuntimeOptions{.engine = "starpu", .cpus = {}, .workers = 0});
        if (runtime_->state().engine->device_choice() == nullptr)
            GTEST_SKIP() << "skipped: StarPU has no devices here, or was started without";
    }
    [[nodiscard]] uint64_t run_by_heddle() {
        uint64_t ran = 0;
        for (const Device& device : devices_->runtime().devices()) ran += device.tasks_run();
        return ran;
    }

    TemporaryFolder folder_{"/tmp/heddle-starpu-"};
    std::optional<TaskDevices> devices_;
    std::shared_ptr<Program> program_;
    std::optional<Runtime> runtime_;
    std::atomic<int> on_cpu_{0};
};

INSTANTIATE_TEST_SUITE_P(Cpus, StarPuChoice, ::testing::Values(0u, 2u),
                         [](const auto& cpus) { return cpus.param == 0 ? "None" : "Two"; });

TEST_P(StarPuChoice, FunctionsAndKernelsSeeWhatTheOthersHaveWritten) {
    Vector<int> data(*runtime_, 1000);
    Sequence sequence(*runtime_);
    constexpr int kTasks = 60;
    for (int i = 0; i < kTasks; ++i) {
        devices_->insert(
            sequence, {program_, "add", {1000}},
            [&](std::span<int> own, int by) {
                ++on_cpu_;
                for (int& one : own) one += by;
            },
            inout(data), value(i));
        if (i % 3 == 0) sequence.insert([](std::span<int> own) { own[0] += 1; }, inout(data));
    }
    sequence.wait();
    std::vector<int> expected(1000, kTasks * (kTasks - 1) / 2);
    expected[0] += kTasks / 3;
    EXPECT_THAT(data.get(), ::testing::ElementsAreArray(expected));
    EXPECT_EQ(run_by_heddle(), 0u) << "heddle's scheduler has nothing to do with it";
    if (GetParam() == 0) {
        EXPECT_EQ(on_cpu_, 0);
    } else {
        // It tries each before it knows.
        EXPECT_GT(on_cpu_, 0);
        EXPECT_LT(on_cpu_, kTasks);
    }
}

TEST_P(StarPuChoice, AKernelWithoutAProgramOrWithoutWorkIsRefused) {
    Vector<int> data(*runtime_, 1000);
    const auto told = [&](const DeviceVariant& variant) {
        Sequence sequence(*runtime_);
        devices_->insert(sequence, variant, test::add, inout(data), value(1));
        return test::failure([&] { sequence.wait(); });
    };
    EXPECT_THAT(told({nullptr, "add", {1000}}), HasSubstr("a device task needs a program"));
    EXPECT_THAT(told({program_, "add", {0}}), HasSubstr("kernel \"add\" has no work"));
}

TEST_P(StarPuChoice, WhatIsSlowOnTheCpuGoesToDevicesWhenThatIsKnown) {
    if (GetParam() == 0) GTEST_SKIP() << "skipped: there is nothing to choose without the CPU";
    Vector<int> data(*runtime_, 10);
    Sequence sequence(*runtime_);
    constexpr int kTasks = 100;
    for (int i = 0; i < kTasks; ++i)
        devices_->insert(
            sequence, {program_, "add", {10}},
            [&](std::span<int> own, int by) {
                ++on_cpu_;
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
                for (int& one : own) one += by;
            },
            inout(data), value(1));
    sequence.wait();
    EXPECT_THAT(data.get(), Each(kTasks));
    EXPECT_GT(on_cpu_, 0);
    EXPECT_LT(on_cpu_, kTasks / 3) << "StarPU measures each ten times";
}

TEST_P(StarPuChoice, RandomProgramsEndAsInTheirOrder) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        std::mt19937 random(seed);
        constexpr size_t kData = 8, kElements = 64;
        std::vector<std::vector<int>> expected(kData, std::vector<int>(kElements));
        std::vector<std::unique_ptr<Vector<int>>> data;
        for (size_t i = 0; i < kData; ++i)
            data.push_back(std::make_unique<Vector<int>>(*runtime_, kElements));
        Sequence sequence(*runtime_);
        for (int task = 0; task < 100; ++task) {
            const size_t to = random() % kData, from = (to + 1 + random() % (kData - 1)) % kData;
            const int by = static_cast<int>(random() % 100);
            switch (random() % 5) {
                case 0:
                    devices_->insert(
                        sequence, {program_, "add", {kElements}},
                        [](std::span<int> own, int add) {
                            for (int& one : own) one += add;
                        },
                        inout(*data[to]), value(by));
                    for (int& one : expected[to]) one += by;
                    break;
                case 1:
                    devices_->insert(
                        sequence, {program_, "copy", {kElements}},
                        [](std::span<const int> in, std::span<int> own) {
                            std::ranges::copy(in, own.begin());
                        },
                        in(*data[from]), out(*data[to]));
                    expected[to] = expected[from];
                    break;
                case 2:
                    devices_->insert(
                        sequence, {program_, "fill", {kElements}},
                        [](std::span<int> own, int with) { std::ranges::fill(own, with); }, out(*data[to]),
                        value(by));
                    std::ranges::fill(expected[to], by);
                    break;
                case 3:
                    sequence.insert([by](std::span<int> own) { own[by % kElements] ^= by; },
                                    inout(*data[to]));
                    expected[to][static_cast<size_t>(by) % kElements] ^= by;
                    break;
                default:
                    sequence.insert([](std::span<const int> in, std::span<int> own) { own[0] = in[1]; },
                                    in(*data[from]), inout(*data[to]));
                    expected[to][0] = expected[from][1];
            }
            if (random() % 20 == 0) {
                sequence.wait();
                data[to]->get()[2] = expected[to][2] = by;  // the program itself
            }
        }
        sequence.wait();
        for (size_t i = 0; i < kData; ++i)
            ASSERT_THAT(data[i]->get(), ::testing::ElementsAreArray(expected[i])) << "seed " << seed;
    }
}

TEST_P(StarPuChoice, AFunctionMayPauseAndInsertTasksForDevicesItself) {
    Vector<int> data(*runtime_, 100);
    Sequence sequence(*runtime_);
    for (int i = 0; i < 30; ++i)
        devices_->insert(
            sequence, {program_, "add", {100}},
            [&](std::span<int> own, int by) {
                ++on_cpu_;
                Sequence inner(*runtime_);
                for (int k = 0; k < by; ++k)
                    devices_->insert(
                        inner, {program_, "add", {100}},
                        [](std::span<int> inner_own, int more) {
                            for (int& one : inner_own) one += more;
                        },
                        inout(data), value(1));
                inner.wait();
                EXPECT_EQ(own[0] % 3, 0);
            },
            inout(data), value(3));
    sequence.wait();
    EXPECT_THAT(data.get(), Each(90));
}

TEST_P(StarPuChoice, WhatFailsIsToldToItsSequenceAndOthersGoOn) {
    Vector<int> data(*runtime_, 100), other(*runtime_, 100);
    Sequence sequence(*runtime_), others(*runtime_);
    devices_->insert(
        sequence, {program_, "no such kernel", {100}},
        [](std::span<int>) { throw std::runtime_error("the function has failed"); }, inout(data));
    devices_->insert(
        others, {program_, "add", {100}},
        [](std::span<int> own, int by) {
            for (int& one : own) one += by;
        },
        inout(other), value(7));
    if (GetParam() == 0)
        EXPECT_THAT(failure([&] { sequence.wait(); }), HasSubstr("no kernel \"no such kernel\""));
    else
        EXPECT_THROW(sequence.wait(), std::runtime_error);
    others.wait();
    EXPECT_THAT(other.get(), Each(7));
    devices_->insert(
        sequence, {program_, "add", {100}}, [](std::span<int>) {}, inout(other));
    if (GetParam() == 0) {
        EXPECT_THAT(failure([&] { sequence.wait(); }), HasSubstr("has 2 arguments, and 1 were set"));
    } else {
        (void)failure([&] { sequence.wait(); });  // the device's or none, as StarPU chose
    }
}

TEST_P(StarPuChoice, TwoRuntimesWithACpuEachKeepTheirTasksThere) {
    const CpuSet cpus = runtime_->cpus();
    if (cpus.count() < 2) GTEST_SKIP() << "skipped: this needs two CPUs";
    runtime_.reset();
    std::vector<std::jthread> programs;
    for (const int cpu : {cpus.first(), cpus.last()})
        programs.emplace_back([this, cpu] {
            Runtime runtime({.engine = "starpu", .cpus = CpuSet::range(cpu, cpu + 1), .workers = 0});
            Vector<int> data(runtime, 100);
            Sequence sequence(runtime);
            for (int i = 0; i < 100; ++i)
                devices_->insert(
                    sequence, {program_, "add", {100}},
                    [cpu](std::span<int> own, int by) {
                        EXPECT_EQ(sched_getcpu(), cpu);
                        for (int& one : own) one += by;
                    },
                    inout(data), value(1));
            sequence.wait();
            EXPECT_THAT(data.get(), Each(100));
        });
}

/// StarPU's start took it for all tasks, of which the engine's then never ran.
TEST(StarPuSettings, APolicyThatTheUserNamesDoesNotTakeThePlaceOfOurs) {
    for (const EngineInfo& engine : Runtime::engines())
        if (engine.name == "starpu" && !engine.available) GTEST_SKIP() << "skipped: " << engine.reason;
    setenv("STARPU_SCHED", "eager", 1);
    Runtime runtime({.engine = "starpu", .cpus = {}, .workers = 0});
    Vector<int> data(runtime, 10);
    Sequence sequence(runtime);
    for (int i = 0; i < 10; ++i)
        sequence.insert(
            [](std::span<int> own) {
                for (int& one : own) ++one;
            },
            inout(data));
    sequence.wait();
    EXPECT_THAT(data.get(), Each(10));
    EXPECT_STREQ(std::getenv("STARPU_SCHED"), "eager");
}

}  // namespace
}  // namespace heddle::devices
