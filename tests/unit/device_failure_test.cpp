// What becomes of tasks that are submitted when one has failed already, of which nobody was told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "support/device_programs.hpp"

namespace heddle::devices {
namespace {

using test::failure;
using ::testing::HasSubstr;

class DeviceFailure : public ::testing::Test {
  protected:
    void SetUp() override {
        failed_->add_kernel("add").arg(0, inout(data_)).arg(1, 1).work(100);
        failed_->on_configure([](Device&, DeviceTask&) { throw Error(ErrorCode::kBadInput, "no picture"); });
        runtime_.submit(failed_);
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (failed_->status() != TaskStatus::kFailed && std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
        ASSERT_EQ(failed_->status(), TaskStatus::kFailed);
    }
    /// Of one that is submitted now, and uses the data so; it alone is waited for.
    [[nodiscard]] TaskStatus outcome(const Access& access) {
        const bool reads_alone = access.mode == AccessMode::kIn;
        const auto later = std::make_shared<DeviceTask>(program_);
        Kernel& kernel = later->add_kernel(reads_alone ? "copy" : "add").arg(0, access);
        if (reads_alone)
            kernel.arg(1, out(std::make_shared<Buffer>(400)));
        else
            kernel.arg(1, 1);
        kernel.work(access.range.size == 0 ? 100 : access.range.size / sizeof(int));
        runtime_.submit(later);
        try {
            later->wait();
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), HasSubstr("no picture"));
        }
        return later->status();
    }

    DeviceRuntime runtime_{test::simulated(test::two_simulated())};
    const std::shared_ptr<Program> program_ = std::make_shared<Program>(runtime_, test::integer_program());
    const std::shared_ptr<Buffer> data_ = std::make_shared<Buffer>(400);
    const TaskPointer failed_ = std::make_shared<DeviceTask>(program_);
};

TEST_F(DeviceFailure, WhoReadsWhatWasNotWrittenFailsUntilFinishTells) {
    EXPECT_EQ(outcome(in(data_)), TaskStatus::kFailed);
    EXPECT_THAT(failure([&] { runtime_.finish(); }), HasSubstr("no picture"));
    EXPECT_EQ(outcome(in(data_)), TaskStatus::kDone);
    EXPECT_EQ(outcome(inout(data_)), TaskStatus::kDone);
    runtime_.finish();
}

TEST_F(DeviceFailure, WhoReadsWhatWasNotWrittenFailsUntilAWaitTells) {
    EXPECT_EQ(outcome(in(data_)), TaskStatus::kFailed);
    EXPECT_THAT(failure([&] { failed_->wait(); }), HasSubstr("no picture"));
    EXPECT_EQ(outcome(in(data_)), TaskStatus::kDone);
}

TEST_F(DeviceFailure, ItGoesOnFromTaskToTask) {
    const auto next = std::make_shared<DeviceTask>(program_), last = std::make_shared<DeviceTask>(program_);
    const auto copy = std::make_shared<Buffer>(400);
    next->add_kernel("copy").arg(0, in(data_)).arg(1, out(copy)).work(100);
    last->add_kernel("add").arg(0, inout(copy)).arg(1, 1).work(100);
    runtime_.submit(next);
    runtime_.submit(last);
    EXPECT_THAT(failure([&] { last->wait(); }), HasSubstr("no picture"));
    EXPECT_EQ(next->status(), TaskStatus::kFailed);
}

/// Whoever throws it: then all that failed for it may be repeated.
TEST_F(DeviceFailure, AFailureIsToldByAnyThatFailedForIt) {
    const auto needs = std::make_shared<DeviceTask>(program_);
    const auto copy = std::make_shared<Buffer>(400);
    needs->add_kernel("copy").arg(0, in(data_)).arg(1, out(copy)).work(100);
    runtime_.submit(needs);
    EXPECT_THAT(failure([&] { needs->wait(); }), HasSubstr("no picture"));
    EXPECT_EQ(outcome(inout(data_)), TaskStatus::kDone);
    EXPECT_EQ(outcome(inout(copy)), TaskStatus::kDone);
    EXPECT_THAT(failure([&] { runtime_.finish(); }), HasSubstr("no picture")) << "it tells all the same";
    runtime_.finish();
}

TEST_F(DeviceFailure, AnotherRuntimeTellsOfItToo) {
    DeviceRuntime other(test::simulated(test::two_simulated()));
    const auto program = std::make_shared<Program>(other, test::integer_program());
    const auto needs = std::make_shared<DeviceTask>(program);
    needs->add_kernel("add").arg(0, inout(data_)).arg(1, 1).work(100);
    other.submit(needs);
    EXPECT_THAT(failure([&] { other.finish(); }), HasSubstr("no picture"));
    EXPECT_EQ(outcome(inout(data_)), TaskStatus::kDone);
}

TEST_F(DeviceFailure, WhoOverwritesIsWell) {
    EXPECT_EQ(outcome(out(data_)), TaskStatus::kDone);
    EXPECT_EQ(outcome(in(data_)), TaskStatus::kDone);
}

TEST_F(DeviceFailure, WhatTheHostWritesIsThere) {
    const std::vector<int> values(10, 7);
    data_->write(values.data(), 40, 0);
    EXPECT_EQ(outcome(in(data_, {0, 40})), TaskStatus::kDone);
    EXPECT_EQ(outcome(in(data_, {40, 360})), TaskStatus::kFailed);
    (void)data_->host(true);
    EXPECT_EQ(outcome(in(data_)), TaskStatus::kDone);
}

}  // namespace
}  // namespace heddle::devices
