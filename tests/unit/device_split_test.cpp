// One kernel over several devices.
#include "heddle/device_split.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "support/device_programs.hpp"

namespace heddle::devices {
namespace {

using test::failure;
using test::integer_program;
using ::testing::Each;
using ::testing::HasSubstr;

/// So many microseconds an item.
SimulatedDevice device(const std::string& name, double us_per_item) {
    SimulatedDevice made{.name = name};
    made.cost_us = [us_per_item](const std::string&, const LaunchShape& shape) {
        return us_per_item * static_cast<double>(shape.work.count());
    };
    return made;
}

class Filling {
  public:
    explicit Filling(std::vector<SimulatedDevice> devices, size_t items)
        : runtime({.kinds = {}, .simulated = std::move(devices)}),
          program(std::make_shared<Program>(runtime, integer_program())),
          buffer(std::make_shared<Buffer>(items * sizeof(int))),
          split(runtime),
          items_(items) {}

    std::vector<TaskPointer> run(int value) {
        return split.run(items_, [&](size_t first, size_t count) {
            auto task = std::make_shared<DeviceTask>(program);
            task->add_kernel("fill")
                .arg(0, out(buffer, {first * sizeof(int), count * sizeof(int)}))
                .arg(1, value)
                .work(count)
                .offset(first);
            return task;
        });
    }
    /// By so many kernels one after the other.
    std::vector<TaskPointer> add_one(int kernels) {
        return split.run(items_, [&](size_t first, size_t count) {
            auto task = std::make_shared<DeviceTask>(program);
            for (int i = 0; i < kernels; ++i)
                task->add_kernel("add")
                    .arg(0, inout(buffer, {first * sizeof(int), count * sizeof(int)}))
                    .arg(1, 1)
                    .work(count)
                    .offset(first);
            return task;
        });
    }
    std::vector<int> content() {
        std::vector<int> values(items_);
        buffer->read(values.data(), buffer->size());
        return values;
    }

    DeviceRuntime runtime;
    std::shared_ptr<Program> program;
    std::shared_ptr<Buffer> buffer;
    DeviceSplit split;

  private:
    size_t items_;
};

double took_us(const std::vector<TaskPointer>& tasks) {
    double begin = INFINITY, end = 0;
    for (const TaskPointer& task : tasks) {
        begin = std::min(begin, task->times().started_us);
        end = std::max(end, task->times().ended_us);
    }
    return end - begin;
}

TEST(DeviceSplit, EachDeviceHasAsMuchAsItIsFast) {
    constexpr size_t kItems = 12'000;
    Filling filling({device("slow", 3), device("fast", 1)}, kItems);
    (void)filling.run(1);
    EXPECT_THAT(filling.content(), Each(1));
    EXPECT_THAT(filling.split.speeds(),
                ::testing::ElementsAre(::testing::DoubleNear(1.0 / 3, 1e-9), ::testing::DoubleNear(1, 1e-9)));
    const std::vector<TaskPointer> second = filling.run(2);
    EXPECT_THAT(filling.content(), Each(2));
    EXPECT_EQ(second.size(), 2u);
    // Both together do 4 items in 3 us.
    EXPECT_LE(took_us(second), 1.01 * kItems * 3 / 4);
}

TEST(DeviceSplit, FewItemsAreEnough) {
    for (const size_t items : {1, 2, 3, 5, 33}) {
        Filling filling({device("a", 1), device("b", 2), device("c", 100)}, items);
        for (int round = 1; round < 4; ++round) {
            (void)filling.run(round);
            EXPECT_THAT(filling.content(), Each(round)) << items;
        }
    }
    Filling none({device("a", 1)}, 1);
    EXPECT_TRUE(none.split.run(0, [](size_t, size_t) { return TaskPointer(); }).empty());
}

TEST(DeviceSplit, TheOthersDoThePartOfADeviceThatDies) {
    SimulatedDevice mortal = device("mortal", 1);
    mortal.fails_at_launch = 4;
    Filling filling({mortal, device("steady", 1)}, 1000);
    (void)filling.run(1);  // two to try it, and its share
    (void)filling.run(2);
    EXPECT_FALSE(filling.runtime.devices()[0].alive());
    EXPECT_THAT(filling.content(), Each(2));
}

TEST(DeviceSplit, TheOthersDoThePartOfADeviceThatDiesBeforeItIsSubmitted) {
    SimulatedDevice mortal = device("mortal", 1);
    mortal.fails_at_launch = 1;
    Filling filling({mortal, device("steady", 1)}, 1000);
    bool died = false;
    (void)filling.split.run(1000, [&](size_t first, size_t count) {
        auto task = std::make_shared<DeviceTask>(filling.program);
        task->add_kernel("fill")
            .arg(0, out(filling.buffer, {first * sizeof(int), count * sizeof(int)}))
            .arg(1, 3)
            .work(count)
            .offset(first);
        if (first > 0 && !std::exchange(died, true)) {
            auto last = std::make_shared<DeviceTask>(filling.program);
            last->add_kernel("fill").arg(0, out(std::make_shared<Buffer>(4))).arg(1, 0).work(1);
            last->only_on(filling.runtime.devices()[0]);
            filling.runtime.submit(last);
            EXPECT_ANY_THROW(last->wait());
        }
        return task;
    });
    EXPECT_FALSE(filling.runtime.devices()[0].alive());
    EXPECT_THAT(filling.content(), Each(3));
}

TEST(DeviceSplit, WhatADeviceHadDoneBeforeItDiedIsDoneAgain) {
    SimulatedDevice mortal = device("mortal", 1);
    mortal.fails_at_launch = 3;
    Filling filling({mortal, device("steady", 1)}, 1000);
    (void)filling.run(1);  // two to try it, which nobody else has; it dies in its share
    EXPECT_FALSE(filling.runtime.devices()[0].alive());
    EXPECT_THAT(filling.content(), Each(1));
    filling.runtime.finish();  // nothing has failed that was not mended
}

TEST(DeviceSplit, WhatADeviceHadChangedBeforeItDiedIsLost) {
    SimulatedDevice mortal = device("mortal", 1);
    mortal.fails_at_launch = 3;
    Filling filling({mortal, device("steady", 1)}, 1000);
    EXPECT_THAT(failure([&] { (void)filling.add_one(1); }), HasSubstr("are lost: only mortal"));
}

/// In the program's memory, where another device would change it once more.
TEST(DeviceSplit, WhatADeviceHadChangedInPartIsLost) {
    SimulatedDevice mortal = device("mortal", 1);
    mortal.shares_host_memory = true;
    mortal.fails_at_launch = 2;
    Filling filling({mortal, device("steady", 1)}, 1000);
    EXPECT_THAT(failure([&] { (void)filling.add_one(2); }),
                HasSubstr("are lost: mortal has failed and had changed a part of them"));
}

TEST(DeviceSplit, WhereNoDeviceIsLeftItSaysSo) {
    SimulatedDevice mortal = device("mortal", 1);
    mortal.fails_at_launch = 2;
    Filling filling({mortal}, 1000);
    EXPECT_THAT(failure([&] { (void)filling.run(1); }), HasSubstr("no device is left"));
    Filling other({device("a", 1)}, 10);
    EXPECT_THAT(failure([&] { (void)other.split.run(10, [](size_t, size_t) { return TaskPointer(); }); }),
                HasSubstr("there is no task for items 0 to 1"));
    EXPECT_THAT(failure([&] {
                    (void)other.split.run(10, [&](size_t, size_t) {
                        auto task = std::make_shared<DeviceTask>(other.program);
                        task->add_kernel("fill").arg(1, 1).work(10);
                        return task;
                    });
                }),
                HasSubstr("argument 0 of kernel \"fill\" is not set"));
}

}  // namespace
}  // namespace heddle::devices
