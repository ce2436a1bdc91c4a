// What the next task of a device reads is copied there while the one before runs, on the virtual clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <vector>

#include "support/device_programs.hpp"

namespace heddle::devices {
namespace {

using test::failure;

/// Tasks that copy a buffer each, with the times that a copy to the device and a kernel take.
class DevicePrefetch : public ::testing::Test {
  protected:
    void start(std::vector<SimulatedDevice> devices, const char* scheduler = "fcfs") {
        runtime_ = std::make_unique<DeviceRuntime>(DeviceOptions{
            .kinds = {}, .simulated = std::move(devices), .scheduler = make_scheduler(scheduler)});
        program_ = std::make_shared<Program>(*runtime_, test::integer_program());
    }
    [[nodiscard]] static SimulatedDevice device(const char* name, double kernel_us) {
        return {.name = name,
                .cost_us = [kernel_us](const std::string&, const LaunchShape&) { return kernel_us; },
                .us_per_byte = 1};
    }
    /// That one byte takes a microsecond.
    TaskPointer add(size_t bytes, Score score = {}) {
        sources_.push_back(std::make_shared<Buffer>(bytes));
        const std::vector<int> values(bytes / sizeof(int), static_cast<int>(sources_.size()));
        sources_.back()->write(values.data(), bytes);
        results_.push_back(std::make_shared<Buffer>(bytes));
        tasks_.push_back(std::make_shared<DeviceTask>(program_, score));
        tasks_.back()
            ->add_kernel("copy")
            .arg(0, in(sources_.back()))
            .arg(1, out(results_.back()))
            .work(bytes / sizeof(int));
        return tasks_.back();
    }
    void expect_results() {
        for (size_t i = 0; i < results_.size(); ++i) {
            std::vector<int> found(results_[i]->size() / sizeof(int));
            results_[i]->read(found.data(), results_[i]->size());
            EXPECT_THAT(found, ::testing::Each(static_cast<int>(i) + 1)) << "task " << i;
        }
    }
    [[nodiscard]] double end_us() const {
        double end = 0;
        for (const TaskPointer& task : tasks_) end = std::max(end, task->times().ended_us);
        return end;
    }

    std::unique_ptr<DeviceRuntime> runtime_;
    std::shared_ptr<Program> program_;
    std::vector<std::shared_ptr<Buffer>> sources_, results_;
    std::vector<TaskPointer> tasks_;
};

struct Shape {
    size_t tasks, copy_us;
    double kernel_us;
};

class DevicePrefetchTimes : public DevicePrefetch, public ::testing::WithParamInterface<Shape> {};

TEST_P(DevicePrefetchTimes, CopiesAreHiddenBehindKernelsOrKernelsBehindCopies) {
    const auto [count, copy_us, kernel_us] = GetParam();
    const auto copy = static_cast<double>(copy_us);
    const double expected = copy + kernel_us + static_cast<double>(count - 1) * std::max(copy, kernel_us);
    for (const size_t devices : {1, 2})
        for (const char* scheduler : {"fcfs", "heft", "pams"}) {
            start(std::vector<SimulatedDevice>(devices, device("far", kernel_us)), scheduler);
            tasks_.clear(), sources_.clear(), results_.clear();
            for (size_t i = 0; i < count * devices; ++i)
                add(copy_us)->only_on(runtime_->devices()[i % devices]);
            runtime_->submit(tasks_);
            runtime_->finish();
            EXPECT_DOUBLE_EQ(end_us(), expected) << scheduler << " on " << devices;
            for (const auto& source : sources_) EXPECT_EQ(source->traffic().to_devices, 1u);
            expect_results();
        }
}

INSTANTIATE_TEST_SUITE_P(Shapes, DevicePrefetchTimes,
                         ::testing::Values(Shape{1, 100, 100}, Shape{2, 100, 100}, Shape{10, 100, 100},
                                           Shape{3, 100, 300}, Shape{10, 100, 300}, Shape{3, 300, 100},
                                           Shape{10, 300, 100}, Shape{10, 4, 1000}, Shape{10, 1000, 4}));

TEST_F(DevicePrefetch, HeftCountsWhatIsHidden) {
    SimulatedDevice near = device("near", 100), far = device("far", 100);
    near.shares_host_memory = true;
    far.type = DeviceType::kGpu;
    start({near, far}, "heft");
    for (int i = 0; i < 11; ++i) add(100, {.cpu = 100, .gpu = 100});
    runtime_->submit(tasks_);
    runtime_->finish();
    EXPECT_EQ(runtime_->devices()[0].tasks_run(), 6u);
    EXPECT_DOUBLE_EQ(end_us(), 600) << "a plan with one copy after the other gives the near one 7";
    expect_results();
}

TEST_F(DevicePrefetch, WhatIsThereAlreadyOrOnItsWayIsNotSentAgain) {
    start({device("far", 100)});
    const auto shared = std::make_shared<Buffer>(400);
    for (int i = 0; i < 5; ++i) add(40)->add_kernel("add").arg(0, inout(shared)).arg(1, 1).work(100);
    runtime_->submit(tasks_);
    runtime_->finish();
    EXPECT_EQ(shared->traffic().to_devices, 1u);
    EXPECT_EQ(shared->traffic().from_devices, 0u);
    EXPECT_EQ(static_cast<const int*>(shared->host())[99], 5);
    // The first kernel is hidden behind the copy for the second one; the others follow each other.
    EXPECT_DOUBLE_EQ(end_us(), 40 + 400 + 100 + 4 * (40 + 100 + 100));
}

TEST_F(DevicePrefetch, OfWhatATaskReadsOnlyWhatItDoesNotWriteItselfIsSent) {
    start({device("far", 100)});
    std::vector<std::shared_ptr<Buffer>> scratch;
    for (int i = 0; i < 3; ++i) {
        scratch.push_back(std::make_shared<Buffer>(400));
        tasks_.push_back(std::make_shared<DeviceTask>(program_));
        tasks_.back()->add_kernel("fill").arg(0, out(scratch.back())).arg(1, i).work(100);
        tasks_.back()->add_kernel("add").arg(0, inout(scratch.back())).arg(1, 1).work(100);
    }
    runtime_->submit(tasks_);
    runtime_->finish();
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(scratch[static_cast<size_t>(i)]->traffic().to_devices, 0u);
        EXPECT_EQ(static_cast<const int*>(scratch[static_cast<size_t>(i)]->host())[99], i + 1);
    }
}

TEST_F(DevicePrefetch, AnIdleDeviceGetsWhatABusyOneWasToDoNext) {
    start({device("slow", 10'000), device("fast", 100)});
    for (int i = 0; i < 8; ++i) add(40);
    runtime_->submit(tasks_);
    runtime_->finish();
    EXPECT_EQ(runtime_->devices()[0].tasks_run(), 1u);
    EXPECT_EQ(runtime_->devices()[1].tasks_run(), 7u);
    EXPECT_DOUBLE_EQ(end_us(), 40 + 10'000);
    expect_results();
    size_t sent = 0;
    for (const auto& source : sources_) {
        EXPECT_LE(source->traffic().to_devices, 2u);
        sent += source->traffic().to_devices;
    }
    EXPECT_EQ(sent, 9u) << "one was sent to both";
}

TEST_F(DevicePrefetch, ADeviceThatDiesWhileItCopiesForTheNextTaskLosesNothing) {
    for (unsigned copy = 1; copy <= 8; ++copy)
        for (const char* scheduler : {"fcfs", "heft", "pams"}) {
            SimulatedDevice mortal = device("mortal", 100);
            mortal.fails_at_copy = copy;
            start({mortal, device("steady", 100)}, scheduler);
            tasks_.clear(), sources_.clear(), results_.clear();
            for (int i = 0; i < 20; ++i)
                add(40)->on_finish(
                    [result = results_.back()](Device&, DeviceTask&) { (void)result->host(); });
            runtime_->submit(tasks_);
            runtime_->finish();
            EXPECT_FALSE(runtime_->devices()[0].alive()) << copy << scheduler;
            EXPECT_LT(runtime_->devices()[0].tasks_run(), copy);
            EXPECT_EQ(runtime_->devices()[0].tasks_run() + runtime_->devices()[1].tasks_run(), 20u);
            expect_results();
        }
}

TEST_F(DevicePrefetch, WhereTheOnlyDeviceDiesWhileItCopiesTasksFail) {
    SimulatedDevice mortal = device("mortal", 100);
    mortal.fails_at_copy = 2;
    start({mortal});
    for (int i = 0; i < 3; ++i) add(40);
    runtime_->submit(tasks_);
    EXPECT_THAT(failure([&] { runtime_->finish(); }), ::testing::HasSubstr("mortal failed at copy 2"));
    for (const TaskPointer& task : tasks_) EXPECT_EQ(task->status(), TaskStatus::kFailed);
}

TEST_F(DevicePrefetch, ATaskThatIsCancelledWhenItIsNextIsNotRun) {
    start({device("far", 100)});
    std::promise<void> ended, go_on;
    add(40)->on_finish([&](Device&, DeviceTask&) {
        ended.set_value();
        go_on.get_future().wait();
    });
    add(80);
    add(120);
    runtime_->submit(tasks_);
    ended.get_future().wait();
    EXPECT_EQ(sources_[1]->traffic().to_devices, 1u) << "it is next";
    EXPECT_EQ(sources_[2]->traffic().to_devices, 0u);
    EXPECT_TRUE(tasks_[1]->cancel());
    go_on.set_value();
    runtime_->finish();
    EXPECT_EQ(tasks_[1]->status(), TaskStatus::kCancelled);
    EXPECT_EQ(results_[1].use_count(), 1) << "nobody keeps its data";
    EXPECT_EQ(static_cast<const int*>(results_[1]->host())[0], 0);
    EXPECT_EQ(static_cast<const int*>(results_[2]->host())[0], 3);
}

TEST_F(DevicePrefetch, WhoOverwritesWhatACancelledTaskWasToReadIsSeen) {
    start({device("far", 100), {.name = "near", .shares_host_memory = true}});
    std::promise<void> ended, go_on;
    add(40)->on_finish([&](Device&, DeviceTask&) {
        ended.set_value();
        go_on.get_future().wait();
    });
    add(80);
    for (const TaskPointer& task : tasks_) task->only_on(runtime_->devices()[0]);
    runtime_->submit(tasks_);
    ended.get_future().wait();
    const auto source = sources_[1], result = std::make_shared<Buffer>(80);
    const auto task = [&](const char* kernel, size_t device) -> Kernel& {
        tasks_.push_back(std::make_shared<DeviceTask>(program_));
        tasks_.back()->only_on(runtime_->devices()[device]);
        return tasks_.back()->add_kernel(kernel).work(20);
    };
    task("add", 1).arg(0, inout(source)).arg(1, 70);
    task("copy", 0).arg(0, in(source)).arg(1, out(result));
    EXPECT_TRUE(tasks_[1]->cancel());
    runtime_->submit(std::span(tasks_).last(2));
    go_on.set_value();
    runtime_->finish();
    EXPECT_EQ(static_cast<const int*>(result->host())[19], 72);
    EXPECT_EQ(source->traffic().to_devices, 2u) << "once for each version";
}

}  // namespace
}  // namespace heddle::devices
