// Schedulers of devices: HEFT's plan against its paper, and what each makes of devices that differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <future>
#include <numeric>
#include <thread>

#include "bench/devices_mix.hpp"
#include "devices/schedulers/heft_plan.hpp"
#include "heddle/device_variant.hpp"
#include "support/device_programs.hpp"

namespace heddle::devices {
namespace {

using bench::makespan;
using bench::MixCost;

/// The ten tasks on three processors of the paper's figure 1.
std::vector<PlanTask> paper_example() {
    const std::vector<std::vector<double>> costs{{14, 16, 9},  {13, 19, 18}, {11, 13, 19}, {13, 8, 17},
                                                 {12, 13, 10}, {13, 16, 9},  {7, 15, 11},  {5, 11, 14},
                                                 {18, 12, 20}, {21, 7, 16}};
    struct Edge {
        size_t from, to;
        double us;
    };
    const std::vector<Edge> edges{{0, 1, 18}, {0, 2, 12}, {0, 3, 9},  {0, 4, 11}, {0, 5, 14},
                                  {1, 7, 19}, {1, 8, 16}, {2, 6, 23}, {3, 7, 27}, {3, 8, 23},
                                  {4, 8, 13}, {5, 7, 15}, {6, 9, 17}, {7, 9, 11}, {8, 9, 13}};
    std::vector<PlanTask> tasks;
    for (const auto& cost : costs) tasks.push_back({cost, {0, 0, 0}, {}});
    for (const Edge& edge : edges) {
        PlannedEdge planned{edge.from, std::vector<double>(9, edge.us)};
        for (size_t i = 0; i < 3; ++i) planned.exchange_us[i * 3 + i] = 0;
        tasks[edge.to].after.push_back(planned);
    }
    return tasks;
}

TEST(Heft, RanksAndMakespanAreThoseOfThePaper) {
    const std::vector<PlanTask> tasks = paper_example();
    const std::vector<double> ranks = upward_ranks(tasks, RankWeight::kMean);
    const std::vector<double> paper{108.000, 77.000, 80.000, 80.000, 69.000,
                                    63.333,  42.667, 35.667, 44.333, 14.667};
    for (size_t i = 0; i < ranks.size(); ++i) EXPECT_NEAR(ranks[i], paper[i], 1e-3) << "task " << i + 1;
    EXPECT_DOUBLE_EQ(makespan(heft_plan(tasks, {0, 0, 0}, RankWeight::kMean)), 80.0);
}

TEST(DeviceSchedulers, AmongTasksAlikeTheHighestPriorityComesFirst) {
    for (const char* scheduler : {"fcfs", "heft", "pams"}) {
        DeviceRuntime runtime(test::simulated({{.name = "alone"}}, scheduler));
        const auto program = std::make_shared<Program>(runtime, test::integer_program());
        std::vector<TaskPointer> tasks;
        for (int i = 0; i < 6; ++i) {
            tasks.push_back(std::make_shared<DeviceTask>(program, Score{.cpu = 5}));
            tasks.back()->add_kernel("fill").arg(0, out(std::make_shared<Buffer>(40))).arg(1, i).work(10);
            tasks.back()->priority(i);
        }
        runtime.submit(tasks);
        runtime.finish();
        for (size_t i = 1; i < tasks.size(); ++i)
            EXPECT_LT(tasks[i]->times().started_us, tasks[i - 1]->times().started_us)
                << scheduler << " " << i;
    }
}

/// One after the other, and many ready at once, so that some wait for their place in a plan.
TEST(DeviceSchedulers, TasksThatComeOneByOneAllRunAndShareTheDevices) {
    DeviceRuntime runtime(test::simulated(test::two_simulated(), "heft"));
    const auto program = std::make_shared<Program>(runtime, test::integer_program());
    std::vector<std::shared_ptr<Buffer>> chains;
    for (int i = 0; i < 16; ++i) chains.push_back(std::make_shared<Buffer>(40));
    constexpr int kTasks = 2000;
    for (int i = 0; i < kTasks; ++i) {
        const auto task = std::make_shared<DeviceTask>(program, Score{.cpu = 10, .gpu = 10});
        task->add_kernel("add").arg(0, inout(chains[static_cast<size_t>(i) % 16])).arg(1, 1).work(10);
        runtime.submit(task);
    }
    runtime.finish();
    for (const auto& chain : chains) EXPECT_EQ(static_cast<const int*>(chain->host())[9], kTasks / 16);
    for (const Device& device : runtime.devices()) EXPECT_GT(device.tasks_run(), kTasks / 4u);
}

double mean_over_seeds(const std::function<double(unsigned)>& ratio) {
    constexpr unsigned kSeeds = 200;
    double sum = 0;
    for (unsigned seed = 0; seed < kSeeds; ++seed) sum += ratio(seed);
    return sum / kSeeds;
}

TEST(DeviceSchedulers, HeftAndPamsComeNearTheBoundWhereFcfsDoesNot) {
    const auto of_bound = [](const char* scheduler) {
        return mean_over_seeds([&](unsigned seed) {
            const auto mix = bench::unequal_mix(seed, 64);
            return makespan(scheduler, mix, mix) / bench::fractional_bound(mix);
        });
    };
    const double fcfs = of_bound("fcfs"), heft = of_bound("heft");
    EXPECT_LE(heft, 1.10);
    EXPECT_LE(of_bound("pams"), 1.10);
    EXPECT_GE(fcfs / heft, 1.8);
}

TEST(DeviceSchedulers, PamsBearsWrongEstimates) {
    const auto with = [](const char* scheduler) {
        return mean_over_seeds([&](unsigned seed) {
            const auto mix = bench::unequal_mix(seed, 64);
            return makespan(scheduler, mix, bench::noisy(mix, seed));
        });
    };
    EXPECT_LE(with("pams"), 1.05 * with("heft"));
}

TEST(DeviceSchedulers, PamsLeavesAHopelessDeviceIdle) {
    EXPECT_LE(mean_over_seeds([](unsigned seed) {
                  const auto mix = bench::slow_mix(seed, 64);
                  return makespan("pams", mix, mix) / bench::fractional_bound(mix);
              }),
              1.10);
}

TEST(DeviceSchedulers, TheSameRunEndsTheSame) {
    const auto mix = bench::unequal_mix(1, 64);
    for (const char* scheduler : {"fcfs", "heft", "pams"})
        EXPECT_EQ(makespan(scheduler, mix, mix), makespan(scheduler, mix, mix)) << scheduler;
}

/// A chain and a lonely task, on devices far from each other: the chain stays where its data is.
TEST(DeviceSchedulers, HeftKeepsAChainTogetherWhereCopiesAreDear) {
    std::vector<SimulatedDevice> far = test::two_simulated();
    for (SimulatedDevice& device : far) {
        device.us_per_byte = 1;
        device.cost_us = [](const std::string&, const LaunchShape&) { return 10.0; };
    }
    DeviceRuntime runtime({.kinds = {}, .simulated = far, .scheduler = make_scheduler("heft")});
    const auto program = std::make_shared<Program>(runtime, test::integer_program());
    std::vector<TaskPointer> chains;
    for (int chain = 0; chain < 2; ++chain) {
        const auto data = std::make_shared<Buffer>(400);
        for (int i = 0; i < 8; ++i) {
            chains.push_back(std::make_shared<DeviceTask>(program, Score{10, 10}));
            chains.back()->add_kernel("add").arg(0, i == 0 ? out(data) : inout(data)).arg(1, 1).work(100);
        }
    }
    runtime.submit(chains);
    runtime.finish();
    for (size_t i = 0; i < chains.size(); ++i)
        EXPECT_EQ(chains[i]->device(), chains[i / 8 * 8]->device()) << i;
    EXPECT_NE(chains[0]->device(), chains[8]->device());
    EXPECT_DOUBLE_EQ(chains[15]->times().ended_us, 80.0);
}

/// It runs while its successor is planned, which would find the other device idle and the data not there.
TEST(DeviceSchedulers, HeftKnowsWhatARunningTaskIsGoingToWrite) {
    std::vector<SimulatedDevice> far = test::two_simulated();
    for (SimulatedDevice& device : far) {
        device.us_per_byte = 1;
        device.cost_us = [](const std::string&, const LaunchShape&) { return 1000.0; };
    }
    DeviceRuntime runtime({.kinds = {}, .simulated = far, .scheduler = make_scheduler("heft")});
    const auto program = std::make_shared<Program>(runtime, test::integer_program());
    for (const Device& device : runtime.devices()) {
        const auto data = std::make_shared<Buffer>(400);
        const auto task = [&] {
            auto made = std::make_shared<DeviceTask>(program, Score{1000, 1000});
            made->add_kernel("add").arg(0, inout(data)).arg(1, 1).work(100);
            return made;
        };
        const TaskPointer running = task(), next = task();
        running->only_on(device);
        std::promise<void> submitted;
        running->on_configure([&](Device&, DeviceTask&) { submitted.get_future().wait(); });
        runtime.submit(running);
        while (running->status() != TaskStatus::kRunning) std::this_thread::yield();
        runtime.submit(next);
        submitted.set_value();
        runtime.finish();
        EXPECT_EQ(next->device(), static_cast<int>(device.index()));
    }
}

/// The five functions of the seed, for one device after the other.
class InTurn final : public Scheduler {
  public:
    void push(TaskPointer task) override {
        const std::lock_guard guard(mutex_);
        queue_.push_back(std::move(task));
    }
    TaskPointer pop(const Device& device) override {
        const std::lock_guard guard(mutex_);
        if (queue_.empty() || device.index() != next_ || !queue_.front()->runs_on(device)) return nullptr;
        TaskPointer task = std::move(queue_.front());
        queue_.pop_front();
        next_ = 1 - next_;
        idle_.notify_all();
        return task;
    }
    void wait_until_idle() override {
        std::unique_lock lock(mutex_);
        idle_.wait(lock, [this] { return queue_.empty(); });
    }

  private:
    std::mutex mutex_;
    std::condition_variable idle_;
    std::deque<TaskPointer> queue_;
    unsigned next_ = 0;
};

TEST(DeviceSchedulers, AUsersOwnDecides) {
    DeviceRuntime runtime(
        {.kinds = {}, .simulated = test::two_simulated(), .scheduler = std::make_shared<InTurn>()});
    const auto program = std::make_shared<Program>(runtime, test::integer_program());
    std::vector<TaskPointer> tasks;
    for (int i = 0; i < 20; ++i) {
        tasks.push_back(std::make_shared<DeviceTask>(program));
        tasks.back()->add_kernel("fill").arg(0, out(std::make_shared<Buffer>(4))).arg(1, i).work(1);
    }
    runtime.submit(tasks);
    runtime.finish();
    for (size_t i = 0; i < tasks.size(); ++i) EXPECT_EQ(tasks[i]->device(), static_cast<int>(i % 2));
}

/// One queue, slowly filled, that counts how often it is asked while a part of a batch is in it.
class BatchWatch final : public Scheduler {
  public:
    static constexpr size_t kBatch = 4;
    void push(TaskPointer task) override {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const std::lock_guard guard(mutex_);
        queue_.push_back(std::move(task));
        ++pushed_;
    }
    TaskPointer pop(const Device&) override {
        const std::lock_guard guard(mutex_);
        if (pushed_ % kBatch != 0) ++partly_there_;
        if (queue_.empty()) return nullptr;
        TaskPointer task = std::move(queue_.front());
        queue_.pop_front();
        return task;
    }
    void wait_until_idle() override {}
    [[nodiscard]] size_t partly_there() const { return partly_there_; }

  private:
    std::mutex mutex_;
    std::deque<TaskPointer> queue_;
    size_t pushed_ = 0, partly_there_ = 0;
};

TEST(DeviceSchedulers, WhatBecomesReadyTogetherIsThereTogether) {
    const auto watch = std::make_shared<BatchWatch>();
    std::vector<SimulatedDevice> devices = test::two_simulated();
    for (SimulatedDevice& device : devices) device.shares_host_memory = true;  // it asks for nothing ahead
    {
        DeviceRuntime runtime({.kinds = {}, .simulated = devices, .scheduler = watch});
        ProgramSource source;
        source.host["rest"] = [](const HostArguments&, const LaunchShape&) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        };
        const auto program = std::make_shared<Program>(runtime, source);
        for (int batch = 0; batch < 10; ++batch) {
            std::vector<TaskPointer> tasks;
            for (size_t i = 0; i < BatchWatch::kBatch; ++i) {
                tasks.push_back(std::make_shared<DeviceTask>(program));
                tasks.back()->add_kernel("rest").work(1);
            }
            runtime.submit(tasks);
        }
        runtime.finish();
    }
    EXPECT_EQ(watch->partly_there(), 0u);
}

/// The CPU and the device have a worker each. What the CPU is measured at makes the device the better one for
/// the third task, when that one has looked for it already.
TEST(DeviceSchedulers, WhoIsBetterOffByWhatAnotherHasLearnedIsWoken) {
    TaskDevices devices(
        1, {.kinds = {}, .simulated = {{.name = "device"}}, .scheduler = make_scheduler("heft")});
    const auto program = std::make_shared<Program>(devices.runtime(), test::integer_program());
    Runtime runtime;
    std::vector<Vector<int>> data;
    for (int i = 0; i < 3; ++i) data.emplace_back(runtime, 100);
    Sequence sequence(runtime);
    const auto insert = [&](size_t at) {
        devices.insert(
            sequence, {program, "add", {100}},
            [](std::span<int> own, int by) {
                std::this_thread::sleep_for(std::chrono::milliseconds(200));
                for (int& one : own) one += by;
            },
            inout(data[at]), value(1));
    };
    insert(0);
    sequence.wait();
    insert(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    insert(2);
    sequence.wait();
    for (Vector<int>& one : data) EXPECT_THAT(one.get(), ::testing::Each(1));
}

TEST(DeviceSchedulers, EachSurvivesADeviceThatDies) {
    for (const char* scheduler : {"fcfs", "heft", "pams"}) {
        DeviceRuntime runtime({.kinds = {},
                               .simulated = {{.name = "mortal", .fails_at_launch = 5}, {.name = "steady"}},
                               .scheduler = make_scheduler(scheduler)});
        const auto program = std::make_shared<Program>(runtime, test::integer_program());
        std::vector<TaskPointer> tasks;
        for (int i = 0; i < 40; ++i) {
            tasks.push_back(std::make_shared<DeviceTask>(program));
            tasks.back()->add_kernel("fill").arg(0, out(std::make_shared<Buffer>(4))).arg(1, i).work(1);
        }
        runtime.submit(tasks);
        runtime.finish();
        for (const TaskPointer& task : tasks) ASSERT_EQ(task->status(), TaskStatus::kDone) << scheduler;
        EXPECT_EQ(runtime.devices()[0].tasks_run() + runtime.devices()[1].tasks_run(), 40u) << scheduler;
    }
}

}  // namespace
}  // namespace heddle::devices
