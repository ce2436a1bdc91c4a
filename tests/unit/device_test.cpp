// Devices that are simulated: what a runtime does with tasks, buffers, errors and callbacks on any kind.
#include "heddle/device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "devices/driver.hpp"
#include "support/device_programs.hpp"

namespace heddle::devices {
namespace {

using test::failure;
using test::integer_program;
using test::two_simulated;
using ::testing::HasSubstr;

/// data[i] += by.
TaskPointer addition(const std::shared_ptr<Program>& program, const Access& data, int by) {
    auto task = std::make_shared<DeviceTask>(program);
    task->add_kernel("add").arg(0, data).arg(1, by).work(data.buffer->size() / sizeof(int));
    return task;
}

std::vector<int> content(Buffer& buffer) {
    std::vector<int> values(buffer.size() / sizeof(int));
    buffer.read(values.data(), buffer.size());
    return values;
}

TEST(Devices, AKernelRunsOnTheCallersMemory) {
    DeviceRuntime runtime({.kinds = {}, .simulated = {{.name = "cpu", .shares_host_memory = true}}});
    const auto program = std::make_shared<Program>(runtime, integer_program());
    std::vector<int> values(1000);
    std::iota(values.begin(), values.end(), 0);
    const auto buffer = std::make_shared<Buffer>(values.data(), values.size() * sizeof(int));
    const TaskPointer task = addition(program, inout(buffer), 5);
    runtime.submit(task);
    task->wait();
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(values[static_cast<size_t>(i)], i + 5);
    EXPECT_EQ(buffer->traffic().bytes, 0u);
    EXPECT_EQ(task->status(), TaskStatus::kDone);
    EXPECT_EQ(task->device(), 0);
    EXPECT_DOUBLE_EQ(task->times().ended_us, 1.0);
}

TEST(Devices, TasksFollowThoseWhoseDataTheyUse) {
    DeviceRuntime runtime({.kinds = {}, .simulated = two_simulated()});
    const auto program = std::make_shared<Program>(runtime, integer_program());
    const auto buffer = std::make_shared<Buffer>(100 * sizeof(int));
    for (int i = 0; i < 200; ++i) {
        auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel(i % 2 == 0 ? "add" : "multiply")
            .arg(0, inout(buffer))
            .arg(1, i % 2 == 0 ? 1 : 3)
            .work(100);
        runtime.submit(task);
    }
    int expected = 0;
    for (int i = 0; i < 200; ++i)
        expected = static_cast<int>(i % 2 == 0 ? static_cast<unsigned>(expected) + 1u
                                               : static_cast<unsigned>(expected) * 3u);
    EXPECT_THAT(content(*buffer), ::testing::Each(expected));
    runtime.finish();
}

TEST(Devices, WhenTheLastTaskHasEndedNoneIsBusy) {
    DeviceRuntime runtime({.kinds = {}, .simulated = two_simulated()});
    const auto program = std::make_shared<Program>(runtime, integer_program());
    const auto buffer = std::make_shared<Buffer>(100 * sizeof(int));
    for (int i = 0; i < 2'000; ++i) {
        for (int task = 0; task <= i % 3; ++task) runtime.submit(addition(program, inout(buffer), 1));
        runtime.finish();
        for (const Device& device : runtime.devices()) ASSERT_FALSE(device.busy()) << i;
    }
}

TEST(Devices, AKernelReadsWhatThoseBeforeItInItsTaskHaveWritten) {
    DeviceRuntime runtime({.kinds = {}, .simulated = {{.name = "far", .us_per_byte = 1e-4}}});
    const auto program = std::make_shared<Program>(runtime, integer_program());
    const auto buffer = std::make_shared<Buffer>(8 * sizeof(int));
    constexpr size_t kSome = 2 * sizeof(int);
    auto task = std::make_shared<DeviceTask>(program);
    // Two apart from each other, of which the last reads all and what is between them.
    task->add_kernel("fill").arg(0, out(buffer, {0, kSome})).arg(1, 7).work(2);
    task->add_kernel("fill").arg(0, out(buffer, {2 * kSome, kSome})).arg(1, 9).work(2).offset(4);
    task->add_kernel("add").arg(0, inout(buffer)).arg(1, 1).work(8);
    runtime.submit(task);
    runtime.finish();
    std::vector<int> values(8);
    buffer->read(values.data(), buffer->size());
    EXPECT_THAT(values, ::testing::ElementsAre(8, 8, 1, 1, 10, 10, 1, 1));
}

void read_halves_of_two_on_a_third(bool straight) {
    SCOPED_TRACE(straight);
    std::vector<SimulatedDevice> three = two_simulated();
    three.push_back({.name = "third"});
    for (SimulatedDevice& one : three) one.peer_access = straight;
    DeviceRuntime runtime({.kinds = {}, .simulated = three});
    const auto program = std::make_shared<Program>(runtime, integer_program());
    constexpr size_t kInts = 4096;
    const auto source = std::make_shared<Buffer>(kInts * sizeof(int));
    const auto result = std::make_shared<Buffer>(kInts * sizeof(int));
    for (size_t half = 0; half < 2; ++half) {
        auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("fill")
            .arg(0, out(source, {half * kInts / 2 * sizeof(int), kInts / 2 * sizeof(int)}))
            .arg(1, static_cast<int>(half) + 7)
            .work(kInts / 2)
            .offset(half * kInts / 2);
        task->only_on(runtime.devices()[half]);
        runtime.submit(task);
    }
    auto task = std::make_shared<DeviceTask>(program);
    task->add_kernel("copy").arg(0, in(source)).arg(1, out(result)).work(kInts);
    task->only_on(runtime.devices()[2]);
    runtime.submit(task);
    runtime.finish();
    const std::vector<int> values = content(*result);
    EXPECT_EQ(values[0], 7);
    EXPECT_EQ(values[kInts / 2 - 1], 7);
    EXPECT_EQ(values[kInts / 2], 8);
    EXPECT_EQ(values[kInts - 1], 8);
    EXPECT_EQ(source->traffic().to_devices, straight ? 0u : 2u);
    EXPECT_EQ(source->traffic().between_devices, straight ? 2u : 0u);
    // To the host and on, or once.
    EXPECT_EQ(source->traffic().bytes, (straight ? 1 : 2) * kInts * sizeof(int));
}

TEST(Devices, HalvesWrittenOnTwoDevicesAreReadWholeOnAThird) {
    read_halves_of_two_on_a_third(false);
    read_halves_of_two_on_a_third(true);
}

TEST(Devices, ABufferIsSentOnceToEachReader) {
    DeviceRuntime runtime({.kinds = {}, .simulated = two_simulated()});
    const auto program = std::make_shared<Program>(runtime, integer_program());
    const auto source = std::make_shared<Buffer>(400);
    const int seven = 7;
    source->write(&seven, sizeof seven);
    for (int i = 0; i < 20; ++i) {
        auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("copy").arg(0, in(source)).arg(1, out(std::make_shared<Buffer>(400))).work(100);
        task->only_on(runtime.devices()[static_cast<size_t>(i % 2)]);
        runtime.submit(task);
    }
    runtime.finish();
    EXPECT_EQ(source->traffic().to_devices, 2u);
    EXPECT_EQ(source->traffic().from_devices, 0u);
}

TEST(Devices, CallbacksSetWhatWasNotSetYet) {
    DeviceRuntime runtime({.kinds = {}, .simulated = two_simulated()});
    const auto program = std::make_shared<Program>(runtime, integer_program());
    const auto buffer = std::make_shared<Buffer>(100 * sizeof(int));
    std::vector<int> found;
    auto task = std::make_shared<DeviceTask>(program);
    task->add_kernel("add");
    task->on_configure([&](Device& device, DeviceTask& own) {
        own.kernel("add").arg(0, buffer).arg(1, 40 + static_cast<int>(device.index())).work(100);
    });
    task->on_finish([&](Device&, DeviceTask&) { found = content(*buffer); });
    task->only_on(runtime.devices()[1]);
    runtime.submit(task);
    runtime.finish();
    EXPECT_THAT(found, ::testing::Each(41));
}

TEST(Devices, WhatIsWrongIsNamed) {
    DeviceRuntime runtime({.kinds = {}, .simulated = two_simulated()});
    const auto program = std::make_shared<Program>(runtime, integer_program());
    const auto buffer = std::make_shared<Buffer>(100, "picture");
    DeviceTask task(program);
    EXPECT_THAT(failure([&] { task.add_kernel("ad"); }),
                HasSubstr("\"ad\": it has add, copy, fill, multiply"));
    EXPECT_THAT(failure([&] {
                    task.add_kernel("add").arg(0, in(buffer, {60, 50}));
                }),
                HasSubstr("bytes 60 to 110 are not in buffer \"picture\", which has 100"));
    EXPECT_THAT(failure([&] { runtime.submit(std::make_shared<DeviceTask>(program)); }),
                HasSubstr("has no kernel"));
    EXPECT_THAT(failure([&] { task.add_kernel("add").group(16, 0); }),
                HasSubstr("a group of 16 x 0 x 1 items of kernel \"add\" has none"));
    EXPECT_THAT(failure([&] { Program bad(runtime, {.opencl = "kernel void x() {}"}); }),
                HasSubstr("the program has no source for its kind"));
    EXPECT_THAT(failure([&] { DeviceRuntime none({.kinds = {"abacus"}}); }),
                HasSubstr("\"abacus\": heddle knows"));
    EXPECT_THAT(failure([&] { (void)make_scheduler("fifo"); }),
                HasSubstr("\"fifo\" of devices: heddle knows fcfs"));
    const TaskPointer once = addition(program, inout(buffer), 1);
    runtime.submit(once);
    EXPECT_THAT(failure([&] { runtime.submit(once); }), HasSubstr("submitted before"));
    auto incomplete = std::make_shared<DeviceTask>(program);
    incomplete->add_kernel("add").arg(1, 3).work(10);
    runtime.submit(incomplete);
    EXPECT_THAT(failure([&] { runtime.finish(); }), HasSubstr("argument 0 of kernel \"add\" is not set"));
    runtime.finish();
}

TEST(Devices, APlugInOfAnotherInterfaceIsNotUsed) {
    DeviceKind kind{kDeviceInterface, "abacus", nullptr, nullptr, nullptr};
    EXPECT_EQ(interface_problem(kind), "");
    kind.interface = kDeviceInterface + 1;
    EXPECT_THAT(interface_problem(kind), HasSubstr("install both of one version"));
}

TEST(Devices, ATaskThatFailsTakesThoseWithItThatNeedItsResult) {
    DeviceRuntime runtime({.kinds = {}, .simulated = two_simulated()});
    const auto program = std::make_shared<Program>(runtime, integer_program());
    const auto buffer = std::make_shared<Buffer>(400);
    const TaskPointer bad = addition(program, inout(buffer), 1);
    bad->on_configure([](Device&, DeviceTask&) { throw Error(ErrorCode::kBadInput, "no picture"); });
    const TaskPointer needs = addition(program, inout(buffer), 1);
    auto overwrites = std::make_shared<DeviceTask>(program);
    overwrites->add_kernel("fill").arg(0, out(buffer)).arg(1, 3).work(100);
    const std::vector<TaskPointer> batch{bad, needs, overwrites};
    runtime.submit(batch);
    EXPECT_THAT(failure([&] { runtime.finish(); }), HasSubstr("no picture"));
    EXPECT_EQ(needs->status(), TaskStatus::kFailed);
    EXPECT_THAT(failure([&] { needs->wait(); }), HasSubstr("no picture"));
    EXPECT_EQ(overwrites->status(), TaskStatus::kDone);
    EXPECT_THAT(content(*buffer), ::testing::Each(3));
}

TEST(Devices, ADeviceThatDiesLosesNoTask) {
    DeviceRuntime runtime(
        {.kinds = {}, .simulated = {{.name = "mortal", .fails_at_launch = 10}, {.name = "steady"}}});
    const auto program = std::make_shared<Program>(runtime, integer_program());
    std::vector<std::shared_ptr<Buffer>> buffers;
    for (int i = 0; i < 50; ++i) {
        buffers.push_back(std::make_shared<Buffer>(400));
        runtime.submit(addition(program, inout(buffers.back()), i));
    }
    runtime.finish();
    EXPECT_FALSE(runtime.devices()[0].alive());
    EXPECT_EQ(runtime.devices()[0].tasks_run(), 9u);
    EXPECT_EQ(runtime.devices()[1].tasks_run(), 41u);
    size_t lost = 0;
    for (int i = 0; i < 50; ++i) {
        const std::string why =
            failure([&] { EXPECT_THAT(content(*buffers[static_cast<size_t>(i)]), ::testing::Each(i)); });
        if (why == "nothing was thrown") continue;
        EXPECT_THAT(why, HasSubstr("are lost: only mortal, which failed, had them"));
        ++lost;
    }
    EXPECT_EQ(lost, 9u);  // what it alone had written
}

/// Where a device is at work in the program's memory, what a task has overwritten there is gone.
TEST(Devices, ATaskThatHasOverwrittenWhatItReadsIsNotRunAgain) {
    for (const bool overwrites : {false, true}) {
        DeviceRuntime runtime(
            {.kinds = {},
             .simulated = {{.name = "mortal", .shares_host_memory = true, .fails_at_launch = 3},
                           {.name = "steady"}}});
        const auto program = std::make_shared<Program>(runtime, integer_program());
        const auto x = std::make_shared<Buffer>(400), y = std::make_shared<Buffer>(400),
                   z = std::make_shared<Buffer>(400);
        const TaskPointer seven = addition(program, inout(x), 7);
        seven->only_on(runtime.devices()[1]);
        runtime.submit(seven);
        seven->wait();
        auto task = std::make_shared<DeviceTask>(program);
        task->add_kernel("copy").arg(0, in(x)).arg(1, out(y)).work(100);
        task->add_kernel("fill").arg(0, out(overwrites ? x : z)).arg(1, 3).work(100);
        task->add_kernel("fill").arg(0, out(z)).arg(1, 4).work(100);
        // The other device has something to do.
        const auto w = std::make_shared<Buffer>(400);
        const TaskPointer busy = addition(program, inout(w), 1);
        busy->only_on(runtime.devices()[1]);
        runtime.submit(std::vector<TaskPointer>{busy, task});
        const std::string why = failure([&] { task->wait(); });
        EXPECT_FALSE(runtime.devices()[0].alive());
        if (overwrites)
            EXPECT_THAT(why, HasSubstr("task \"copy+fill+fill\": mortal failed at launch 3"));
        else
            EXPECT_THAT(content(*y), ::testing::Each(7)) << why;
    }
}

TEST(Devices, ABufferIsUsedByRuntimesOneAfterTheOther) {
    const auto buffer = std::make_shared<Buffer>(400);
    for (const bool shares : {false, true})
        for (int i = 0; i < 80; ++i) {
            DeviceRuntime runtime(
                {.kinds = {}, .simulated = {{.name = "one", .shares_host_memory = shares}}});
            runtime.submit(addition(std::make_shared<Program>(runtime, integer_program()), inout(buffer), 1));
            runtime.finish();
        }
    EXPECT_THAT(content(*buffer), ::testing::Each(160));
}

TEST(Devices, AProgramOfARuntimeThatHasGoneIsRefused) {
    std::shared_ptr<Program> program;
    {
        DeviceRuntime one({.kinds = {}, .simulated = {{.name = "alone"}}});
        program = std::make_shared<Program>(one, integer_program());
    }
    DeviceRuntime two({.kinds = {}, .simulated = two_simulated()});
    const auto buffer = std::make_shared<Buffer>(400);
    EXPECT_THAT(failure([&] { two.submit(addition(program, inout(buffer), 1)); }),
                HasSubstr("is another runtime's"));
}

TEST(Devices, WhoNeedsWhatAnotherDeviceLostFailsAloneAndItsDeviceGoesOn) {
    DeviceRuntime runtime(
        {.kinds = {}, .simulated = {{.name = "mortal", .fails_at_launch = 2}, {.name = "steady"}}});
    const auto program = std::make_shared<Program>(runtime, integer_program());
    const auto buffer = std::make_shared<Buffer>(400), other = std::make_shared<Buffer>(400);
    const auto on = [&](size_t device, const std::shared_ptr<Buffer>& what) {
        const TaskPointer task = addition(program, inout(what), 1);
        task->only_on(runtime.devices()[device]);
        runtime.submit(task);
        return failure([&] { task->wait(); });
    };
    EXPECT_EQ(on(0, buffer), "nothing was thrown");
    EXPECT_THAT(on(0, other), HasSubstr("mortal failed at launch 2"));
    EXPECT_THAT(on(1, buffer), HasSubstr("are lost: only mortal, which failed, had them"));
    EXPECT_TRUE(runtime.devices()[1].alive());
    EXPECT_EQ(on(1, other), "nothing was thrown");
    EXPECT_THAT(content(*other), ::testing::Each(1));
    (void)failure([&] { runtime.finish(); });
}

TEST(Devices, WhatATaskDidBeforeItFailedIsTheSameEverywhere) {
    DeviceRuntime runtime({.kinds = {}, .simulated = two_simulated()});
    const auto program = std::make_shared<Program>(runtime, integer_program());
    const auto buffer = std::make_shared<Buffer>(400);
    for (int i = 0; i < 3; ++i) {
        const TaskPointer task = addition(program, inout(buffer), 10);
        task->add_kernel("add").arg(1, 1).work(100);  // its first argument is not set
        task->only_on(runtime.devices()[0]);
        runtime.submit(task);
        EXPECT_THAT(failure([&] { runtime.finish(); }), HasSubstr("argument 0 of kernel \"add\" is not set"));
        EXPECT_THAT(content(*buffer), ::testing::Each(11 * i + 10)) << "the first kernel ran";
        const TaskPointer next = addition(program, inout(buffer), 1);
        next->only_on(runtime.devices()[i % 2]);
        runtime.submit(next);
        runtime.finish();
        EXPECT_THAT(content(*buffer), ::testing::Each(11 * i + 11));
    }
}

TEST(Devices, WhenAllDevicesDieTasksFail) {
    DeviceRuntime runtime({.kinds = {}, .simulated = {{.name = "mortal", .fails_at_launch = 3}}});
    const auto program = std::make_shared<Program>(runtime, integer_program());
    std::vector<TaskPointer> tasks;
    for (int i = 0; i < 10; ++i) tasks.push_back(addition(program, inout(std::make_shared<Buffer>(40)), 1));
    runtime.submit(tasks);
    EXPECT_THAT(failure([&] { runtime.finish(); }), HasSubstr("task \"add\": mortal failed at launch 3"));
    size_t failed = 0;
    for (const TaskPointer& task : tasks) failed += task->status() == TaskStatus::kFailed;
    EXPECT_EQ(failed, 8u);
    EXPECT_THAT(failure([&] { runtime.submit(addition(program, inout(std::make_shared<Buffer>(40)), 1)); }),
                HasSubstr("mortal: it failed"));
}

TEST(Devices, ACancelledTaskNeverBegins) {
    DeviceRuntime runtime({.kinds = {}, .simulated = two_simulated()});
    const auto program = std::make_shared<Program>(runtime, integer_program());
    const auto buffer = std::make_shared<Buffer>(400);
    std::atomic<bool> go{false};
    const TaskPointer first = addition(program, inout(buffer), 1);
    first->on_configure([&](Device&, DeviceTask&) { go.wait(false); });
    const TaskPointer second = addition(program, inout(buffer), 10);
    const TaskPointer third = addition(program, inout(buffer), 100);
    const std::vector<TaskPointer> batch{first, second, third};
    runtime.submit(batch);
    EXPECT_TRUE(second->cancel());
    EXPECT_FALSE(second->cancel());
    go = true;
    go.notify_all();
    runtime.finish();
    EXPECT_EQ(first->status(), TaskStatus::kDone);
    EXPECT_FALSE(first->cancel());
    EXPECT_EQ(third->status(), TaskStatus::kCancelled);
    EXPECT_THAT(content(*buffer), ::testing::Each(1));
}

TEST(Devices, ManyThreadsSubmitAtOnce) {
    DeviceRuntime runtime({.kinds = {}, .simulated = two_simulated()});
    const auto program = std::make_shared<Program>(runtime, integer_program());
    const auto buffer = std::make_shared<Buffer>(40);
    {
        std::vector<std::jthread> threads;
        for (int thread = 0; thread < 4; ++thread)
            threads.emplace_back([&] {
                for (int i = 0; i < 250; ++i) runtime.submit(addition(program, inout(buffer), 1));
            });
    }
    runtime.finish();
    EXPECT_THAT(content(*buffer), ::testing::Each(1000));
}

}  // namespace
}  // namespace heddle::devices
