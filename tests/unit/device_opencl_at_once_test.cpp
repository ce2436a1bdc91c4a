// Tasks of a CPU device of OpenCL that are in flight at once: beside each other, one behind the other, or
// alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "heddle/device.hpp"
#include "support/on_cpus.hpp"

namespace heddle::devices {
namespace {

/// On a CPU that has cores for two. Its kernels use one buffer for all, and say that they only read it, so
/// that no task follows another.
class OpenClTasksAtOnce : public ::testing::Test {
  protected:
    void SetUp() override {
        for (const DeviceInfo& info : list_devices())
            if (info.kind == "opencl" && !info.available) GTEST_SKIP() << info.reason;
        if (!two_cpus_.enough()) GTEST_SKIP() << "there is one CPU";
        runtime_.emplace();
        const auto& devices = runtime_->devices();
        const auto cpu = std::ranges::find_if(devices, [](const Device& one) {
            return one.info().shares_host_memory && one.info().units > 1 && one.info().platform != "Oclgrind";
        });
        if (cpu == devices.end()) GTEST_SKIP() << "no device works in the host's memory on two cores";
        cpu_ = &*cpu;
        program_ = std::make_shared<Program>(*runtime_, ProgramSource{.opencl = R"(
            kernel void meet(global volatile int* data) {
                const int before = atomic_inc(data);
                for (int i = 0; i < 20000 && data[1] == 0; ++i)
                    if (data[0] > before + 1) atomic_inc(data + 1);
                atomic_dec(data);
            }
            kernel void add(global volatile int* data) {
                const int before = data[0];
                for (volatile int i = 0; i < 2000; ++i);
                data[0] = before + 1;
            }
        )"});
    }
    void run(int count, const std::function<TaskPointer()>& make) {
        std::vector<TaskPointer> tasks;
        for (int i = 0; i < count; ++i) {
            tasks.push_back(make());
            tasks.back()->only_on(*cpu_);
        }
        runtime_->submit(tasks);
        runtime_->finish();
    }

    const heddle::test::OnCpus two_cpus_{2};
    std::optional<DeviceRuntime> runtime_;
    const Device* cpu_ = nullptr;
    std::shared_ptr<Program> program_;
    int numbers_[2] = {0, 0};
    std::shared_ptr<Buffer> buffer_ = std::make_shared<Buffer>(numbers_, sizeof numbers_);
};

TEST_F(OpenClTasksAtOnce, RunBesideEachOtherWhereTheyAreShort) {
    // Where others use a core, the two may have but one for a while.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (numbers_[1] == 0 && std::chrono::steady_clock::now() < end)
        run(20, [&] {
            const auto task = std::make_shared<DeviceTask>(program_);
            task->add_kernel("meet").arg(0, in(buffer_)).work(1);
            return task;
        });
    EXPECT_GT(numbers_[1], 0) << "no two of them were there at once";
    EXPECT_EQ(numbers_[0], 0);
}

/// Each follows the one before: they are all there at once, and run in turn.
TEST_F(OpenClTasksAtOnce, GoAheadOfTheEndOfThoseThatTheyFollow) {
    constexpr int kTasks = 100;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    int rounds = 0;
    for (bool ahead = false; !ahead && std::chrono::steady_clock::now() < end; ++rounds) {
        std::vector<TaskPointer> tasks;
        for (int i = 0; i < kTasks; ++i) {
            tasks.push_back(std::make_shared<DeviceTask>(program_));
            tasks.back()->add_kernel("add").arg(0, inout(buffer_)).work(1);
            tasks.back()->only_on(*cpu_);
        }
        runtime_->submit(tasks);
        while (tasks.back()->status() != TaskStatus::kDone)
            for (size_t i = 1; i < tasks.size() && !ahead; ++i)
                ahead = tasks[i]->status() == TaskStatus::kRunning &&
                        tasks[i - 1]->status() == TaskStatus::kRunning;
        runtime_->finish();
        ASSERT_EQ(static_cast<const int*>(buffer_->host())[0], kTasks * (rounds + 1));
    }
    EXPECT_LT(std::chrono::steady_clock::now(), end) << "no two of them were in flight at once";
}

/// What a finish callback sees is what its task has left.
TEST_F(OpenClTasksAtOnce, DoNotGoAheadOfOneThatHasAFinishCallback) {
    int calls = 0, wrong = 0;
    for (int round = 0; round < 20; ++round)
        run(50, [&] {
            const auto task = std::make_shared<DeviceTask>(program_);
            task->add_kernel("add").arg(0, inout(buffer_)).work(1);
            task->on_finish([&](Device&, DeviceTask&) {
                int number = 0;
                buffer_->read(&number, sizeof number);
                wrong += number != ++calls;
            });
            return task;
        });
    EXPECT_EQ(calls, 1000);
    EXPECT_EQ(wrong, 0);
}

/// As those of the seed's programs, whose callbacks use the buffers of others, too.
TEST_F(OpenClTasksAtOnce, TakeTurnsWhereTheirDataIsKnownLate) {
    constexpr int kRounds = 20, kTasks = 50;
    for (int round = 0; round < kRounds; ++round)
        run(kTasks, [&] {
            const auto task = std::make_shared<DeviceTask>(program_);
            task->add_kernel("add").work(1);
            task->on_configure([&](Device&, DeviceTask& self) { self.kernel("add").arg(0, inout(buffer_)); });
            return task;
        });
    EXPECT_EQ(static_cast<const int*>(buffer_->host())[0], kRounds * kTasks);
}

/// Pictures of a film go through one buffer, which callbacks fill and read.
TEST_F(OpenClTasksAtOnce, HaveTheirDeviceAloneFromTheirConfigureToTheirFinishCallback) {
    const auto frame = std::make_shared<Buffer>(sizeof(int));
    int wrong = 0, number = 0;
    for (int round = 0; round < 20; ++round)
        run(50, [&] {
            const auto task = std::make_shared<DeviceTask>(program_);
            task->add_kernel("add").work(1);
            task->on_configure([&, own = number](Device&, DeviceTask& self) {
                frame->write(&own, sizeof own);
                self.kernel("add").arg(0, inout(frame));
            });
            task->on_finish([&, own = number++](Device&, DeviceTask&) {
                int result = 0;
                frame->read(&result, sizeof result);
                wrong += result != own + 1;
            });
            return task;
        });
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace heddle::devices
