// The graph of device tasks: who waits for whom, what becomes of it when tasks are cancelled, fail, or lose
// the device that could run them, and what a scheduler is told in which order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <fstream>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/device_programs.hpp"
#include "support/sanitized.hpp"

namespace heddle::devices {
namespace {

using test::failure;
using test::integer_program;
using test::two_simulated;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Closed until it is opened; who waits for too long goes on.
class Gate {
  public:
    void open() {
        open_ = true;
        open_.notify_all();
    }
    void wait() const {
        constexpr std::chrono::seconds kLongest{20};
        const auto end = std::chrono::steady_clock::now() + kLongest;
        while (!open_ && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        EXPECT_TRUE(open_);
    }

  private:
    std::atomic<bool> open_{false};
};

class DeviceGraph : public ::testing::Test {
  protected:
    void start(std::vector<SimulatedDevice> devices, std::shared_ptr<Scheduler> scheduler = {}) {
        runtime_ = std::make_unique<DeviceRuntime>(
            DeviceOptions{.kinds = {}, .simulated = std::move(devices), .scheduler = std::move(scheduler)});
        program_ = std::make_shared<Program>(*runtime_, integer_program());
    }
    [[nodiscard]] TaskPointer task(const Access& data, Score score = {}) const {
        auto made = std::make_shared<DeviceTask>(program_, score);
        made->add_kernel("add").arg(0, data).arg(1, 1).work(data.buffer->size() / sizeof(int));
        return made;
    }
    [[nodiscard]] static std::shared_ptr<Buffer> buffer() { return std::make_shared<Buffer>(400); }

    std::unique_ptr<DeviceRuntime> runtime_;
    std::shared_ptr<Program> program_;
};

TEST_F(DeviceGraph, ATaskTwiceInABatchLeavesAllOfItUnsubmitted) {
    start(two_simulated());
    const TaskPointer first = task(inout(buffer())), second = task(inout(buffer()));
    const std::vector<TaskPointer> batch{first, second, first};
    EXPECT_THAT(failure([&] { runtime_->submit(batch); }), HasSubstr("is twice in one batch"));
    EXPECT_EQ(first->status(), TaskStatus::kBuilt);
    EXPECT_EQ(second->status(), TaskStatus::kBuilt);
    runtime_->finish();
    runtime_->submit(std::span(batch).first(2));
    runtime_->finish();
    EXPECT_EQ(first->status(), TaskStatus::kDone);
    EXPECT_EQ(second->status(), TaskStatus::kDone);
}

TEST_F(DeviceGraph, WhoOverwritesWhatACancelledTaskWaitedForWaitsForIt) {
    start(two_simulated());
    const auto data = buffer();
    Gate gate;
    const TaskPointer writes = task(inout(data));
    writes->on_configure([&](Device&, DeviceTask&) { gate.wait(); });
    const TaskPointer cancelled = task(inout(data)), overwrites = task(out(data)), later = task(out(data));
    const std::vector<TaskPointer> batch{writes, cancelled, overwrites};
    runtime_->submit(batch);
    EXPECT_TRUE(cancelled->cancel());
    EXPECT_EQ(cancelled->status(), TaskStatus::kCancelled);
    EXPECT_EQ(overwrites->status(), TaskStatus::kWaiting);
    EXPECT_TRUE(overwrites->cancel());
    runtime_->submit(later);
    EXPECT_EQ(later->status(), TaskStatus::kWaiting) << "the first one still writes";
    gate.open();
    runtime_->finish();
    EXPECT_EQ(later->status(), TaskStatus::kDone);
}

/// A cancelled task stands between them: who reads what the failed one was to write fails, and nobody else.
TEST_F(DeviceGraph, WhoFollowsACancelledTaskFailsForWhatItReadsItself) {
    start(two_simulated());
    const auto data = buffer(), other = buffer();
    Gate gate;
    const TaskPointer fails = task(inout(data));
    fails->on_configure([&](Device&, DeviceTask&) {
        gate.wait();
        throw Error(ErrorCode::kBadInput, "no picture");
    });
    const TaskPointer overwrites = task(out(data)), reads = task(inout(data));
    auto between = std::make_shared<DeviceTask>(program_, Score{});
    between->add_kernel("add").arg(0, inout(other)).arg(1, 1).work(4);
    between->add_kernel("add").arg(0, inout(data)).arg(1, 1).work(4);
    const TaskPointer beside = task(inout(other));
    runtime_->submit(std::vector<TaskPointer>{fails, between});
    EXPECT_TRUE(between->cancel());
    runtime_->submit(overwrites);
    EXPECT_TRUE(overwrites->cancel());
    runtime_->submit(std::vector<TaskPointer>{reads, beside});
    gate.open();
    EXPECT_THAT(failure([&] { runtime_->finish(); }), HasSubstr("no picture"));
    EXPECT_EQ(reads->status(), TaskStatus::kFailed);
    EXPECT_EQ(beside->status(), TaskStatus::kDone);
}

TEST_F(DeviceGraph, ALongChainIsCancelledOnASmallStack) {
    constexpr size_t kTasks = 30'000, kStack = size_t{1} << 19;
    start(two_simulated());
    const auto data = buffer();
    Gate gate;
    std::vector<TaskPointer> chain;
    for (size_t i = 0; i < kTasks; ++i) chain.push_back(task(inout(data)));
    chain[0]->on_configure([&](Device&, DeviceTask&) { gate.wait(); });
    runtime_->submit(chain);
    pthread_attr_t small;
    ASSERT_EQ(::pthread_attr_init(&small), 0);
    ASSERT_EQ(::pthread_attr_setstacksize(&small, kStack), 0);
    pthread_t thread{};
    const auto cancel = [](void* second) -> void* {
        return static_cast<DeviceTask*>(second)->cancel() ? second : nullptr;
    };
    ASSERT_EQ(::pthread_create(&thread, &small, cancel, chain[1].get()), 0);
    void* cancelled = nullptr;
    ASSERT_EQ(::pthread_join(thread, &cancelled), 0);
    ::pthread_attr_destroy(&small);
    EXPECT_EQ(cancelled, chain[1].get());
    gate.open();
    runtime_->finish();
    EXPECT_EQ(chain[0]->status(), TaskStatus::kDone);
    for (size_t i = 1; i < kTasks; ++i) ASSERT_EQ(chain[i]->status(), TaskStatus::kCancelled) << i;
}

TEST_F(DeviceGraph, ATaskThatBecomesReadyWhenItsDeviceIsLostFails) {
    for (const char* scheduler : {"fcfs", "heft", "pams"}) {
        start({{.name = "mortal", .fails_at_launch = 1}, {.name = "steady"}}, make_scheduler(scheduler));
        const auto first = buffer(), second = buffer();
        const TaskPointer kills = task(inout(first));
        kills->only_on(runtime_->devices()[0]);
        // It may run after that one, whatever becomes of it.
        auto before = std::make_shared<DeviceTask>(program_);
        before->add_kernel("fill").arg(0, out(first)).arg(1, 1).work(100);
        before->add_kernel("fill").arg(0, out(second)).arg(1, 1).work(100);
        before->only_on(runtime_->devices()[1]);
        std::vector<TaskPointer> batch{kills, before};
        for (int i = 0; i < 3; ++i) {
            batch.push_back(task(i == 1 ? out(second) : inout(second)));
            batch.back()->only_on(runtime_->devices()[0]);
        }
        runtime_->submit(batch);
        EXPECT_THAT(failure([&] { runtime_->finish(); }), HasSubstr("mortal failed at launch 1"));
        EXPECT_EQ(before->status(), TaskStatus::kDone) << scheduler;
        for (size_t i = 2; i < batch.size(); ++i) {
            EXPECT_EQ(batch[i]->status(), TaskStatus::kFailed) << scheduler;
            EXPECT_THAT(failure([&] { batch[i]->wait(); }), HasSubstr("mortal failed at launch 1"));
        }
    }
}

/// The five functions of the seed: it keeps what nobody pops.
class InOrder : public Scheduler {
  public:
    void push(TaskPointer task) override {
        const std::lock_guard guard(mutex_);
        told_.push_back("push " + task->name());
        queue_.push_back(std::move(task));
    }
    TaskPointer pop(const Device& device) override {
        const std::lock_guard guard(mutex_);
        for (auto at = queue_.begin(); at != queue_.end(); ++at) {
            if (!(*at)->runs_on(device)) continue;
            TaskPointer task = std::move(*at);
            queue_.erase(at);
            return task;
        }
        return nullptr;
    }
    void wait_until_idle() override { ADD_FAILURE() << "a queue may keep what was withdrawn"; }
    void tell(const std::string& what) {
        const std::lock_guard guard(mutex_);
        told_.push_back(what);
    }
    [[nodiscard]] std::vector<std::string> told() {
        const std::lock_guard guard(mutex_);
        return told_;
    }

  private:
    std::mutex mutex_;
    std::deque<TaskPointer> queue_;
    std::vector<std::string> told_;
};

TEST_F(DeviceGraph, FinishDoesNotWaitForASchedulerThatKeepsWhatWasWithdrawn) {
    start({{.name = "mortal", .fails_at_launch = 1}, {.name = "steady"}}, std::make_shared<InOrder>());
    std::vector<TaskPointer> batch;
    for (int i = 0; i < 4; ++i) {
        batch.push_back(task(inout(buffer())));
        batch.back()->only_on(runtime_->devices()[0]);
    }
    runtime_->submit(batch);
    EXPECT_THAT(failure([&] { runtime_->finish(); }), HasSubstr("mortal failed at launch 1"));
    for (const TaskPointer& one : batch) EXPECT_EQ(one->status(), TaskStatus::kFailed);
}

/// Goes on in submitted() when another task has begun.
class Slow final : public InOrder {
  public:
    void submitted(std::span<const TaskPointer> batch, std::span<const Device* const>) override {
        if (batch.front()->name() != "second") return;
        if (before_) before_();
        tell("submitted second");
    }
    void dropped(const TaskPointer& task) override { tell("dropped " + task->name()); }
    std::function<void()> before_;
};

class SlowScheduler : public DeviceGraph {
  protected:
    void SetUp() override {
        start({{.name = "one"}}, scheduler_);
        first_ = named("first"), second_ = named("second"), other_ = named("other");
        first_->kernel("add").arg(0, inout(data_));
        second_->kernel("add").arg(0, inout(data_));
        first_->on_configure([this](Device&, DeviceTask&) { gate_.wait(); });
        other_->on_configure([this](Device&, DeviceTask&) { begun_.open(); });
        runtime_->submit(first_);
        runtime_->submit(other_);
    }
    [[nodiscard]] TaskPointer named(const std::string& name) const {
        auto made = std::make_shared<DeviceTask>(program_, Score{}, name);
        made->add_kernel("add").arg(0, inout(buffer())).arg(1, 1).work(100);
        return made;
    }

    std::shared_ptr<Slow> scheduler_ = std::make_shared<Slow>();
    std::shared_ptr<Buffer> data_ = buffer();
    TaskPointer first_, second_, other_;
    Gate gate_, begun_;
};

TEST_F(SlowScheduler, KnowsWhatWasSubmittedBeforeItIsPushed) {
    scheduler_->before_ = [this] {
        gate_.open();
        begun_.wait();  // then what the first one's end makes ready was pushed
    };
    runtime_->submit(second_);
    runtime_->finish();
    EXPECT_THAT(scheduler_->told(),
                ElementsAre("push first", "push other", "submitted second", "push second"));
}

TEST_F(SlowScheduler, IsToldAfterThatOfWhatWasWithdrawnBefore) {
    scheduler_->before_ = [this] { EXPECT_TRUE(second_->cancel()); };
    runtime_->submit(second_);
    gate_.open();
    runtime_->finish();
    EXPECT_EQ(scheduler_->told().back(), "dropped second");
    EXPECT_EQ(second_->status(), TaskStatus::kCancelled);
}

/// The caller may free the memory that is still copied otherwise.
TEST_F(DeviceGraph, ATaskThatFailsEndsAfterTheCopiesThatItBegan) {
    start({{.name = "far", .us_per_byte = 1}, {.name = "near"}});
    auto fails = std::make_shared<DeviceTask>(program_);
    fails->add_kernel("copy").arg(0, in(buffer())).work(100);
    fails->kernel("copy").arg(2, 1);
    fails->only_on(runtime_->devices()[0]);
    runtime_->submit(fails);
    EXPECT_THAT(failure([&] { fails->wait(); }), HasSubstr("argument 1 of kernel \"copy\" is not set"));
    const TaskPointer next = task(inout(buffer()));
    next->only_on(runtime_->devices()[1]);
    runtime_->submit(next);
    EXPECT_THAT(failure([&] { runtime_->finish(); }), HasSubstr("is not set"));
    EXPECT_DOUBLE_EQ(next->times().started_us, 400);
}

TEST_F(DeviceGraph, WhatATaskReadsOfAnotherIsKnownWhenThatHasEnded) {
    start({{.name = "far", .us_per_byte = 1}, {.name = "farther", .us_per_byte = 2}});
    const auto data = buffer();
    const TaskPointer writes = task(inout(data, {0, 300})), reads = task(in(data, {100, 300}));
    const auto devices = runtime_->devices();
    runtime_->submit(writes);
    runtime_->finish();
    EXPECT_DOUBLE_EQ(reads->exchange_us(*writes, devices[0], devices[1]), 200 + 400);
}

TEST_F(DeviceGraph, ManyAreCancelledWhileTheyBegin) {
    for (const char* scheduler : {"fcfs", "heft", "pams"}) {
        start(two_simulated(), make_scheduler(scheduler));
        std::vector<TaskPointer> tasks;
        size_t cancelled = 0;
        for (int i = 0; i < 2'000; ++i) {
            tasks.push_back(task(inout(buffer())));
            runtime_->submit(tasks.back());
            if (i % 2 == 1) cancelled += tasks[static_cast<size_t>(i - i % 8)]->cancel();
            if (i % 4 == 3) cancelled += tasks.back()->cancel();
        }
        runtime_->finish();
        size_t found = 0;
        for (const TaskPointer& one : tasks) found += one->status() == TaskStatus::kCancelled;
        EXPECT_EQ(found, cancelled) << scheduler;
    }
}

TEST_F(DeviceGraph, CostsOfNothingAndWithoutEndAreScheduled) {
    constexpr double kNever = std::numeric_limits<double>::infinity(),
                     kNone = std::numeric_limits<double>::quiet_NaN();
    for (const char* scheduler : {"fcfs", "heft", "pams"})
        for (const double us : {0.0, kNever, kNone, -1.0}) {
            start(two_simulated(), make_scheduler(scheduler));
            std::vector<TaskPointer> tasks;
            for (int i = 0; i < 10; ++i) tasks.push_back(task(inout(buffer()), Score{us, us, us}));
            runtime_->submit(tasks);
            runtime_->finish();
            for (const TaskPointer& one : tasks) EXPECT_EQ(one->status(), TaskStatus::kDone) << scheduler;
        }
}

/// In whatever order its arguments are.
TEST_F(DeviceGraph, AKernelThatReadsWhatItOverwritesNeedsItsWriter) {
    runtime_ = std::make_unique<DeviceRuntime>(DeviceOptions{.kinds = {}, .simulated = two_simulated()});
    ProgramSource source = integer_program();
    source.host["copy_to"] = [](const HostArguments&, const LaunchShape&) {};
    program_ = std::make_shared<Program>(*runtime_, source);
    const auto data = buffer();
    const TaskPointer bad = task(inout(data));
    bad->on_configure([](Device&, DeviceTask&) { throw Error(ErrorCode::kBadInput, "no picture"); });
    auto overwrites = std::make_shared<DeviceTask>(program_);
    overwrites->add_kernel("copy_to").arg(0, out(data)).arg(1, in(data)).work(1);
    runtime_->submit(std::vector<TaskPointer>{bad, overwrites});
    EXPECT_THAT(failure([&] { overwrites->wait(); }), HasSubstr("no picture"));
    EXPECT_THAT(failure([&] { runtime_->finish(); }), HasSubstr("no picture"));
}

class TwoRuntimes : public DeviceGraph {
  protected:
    TwoRuntimes() {
        start({{.name = "first"}});
        other_ = std::make_unique<DeviceRuntime>(DeviceOptions{
            .kinds = {}, .simulated = {{.name = "second"}, {.name = "third", .fails_at_launch = 1}}});
        others_program_ = std::make_shared<Program>(*other_, integer_program());
    }
    [[nodiscard]] TaskPointer others_task(const Access& data) const {
        auto made = std::make_shared<DeviceTask>(others_program_);
        made->add_kernel("add").arg(0, data).arg(1, 1).work(data.buffer->size() / sizeof(int));
        return made;
    }

    std::unique_ptr<DeviceRuntime> other_;
    std::shared_ptr<Program> others_program_;
};

TEST_F(TwoRuntimes, HandTheTasksOfABufferTheyShareToEachOther) {
    const auto data = buffer();
    Gate gate;
    for (int round = 0; round < 50; ++round) {
        const TaskPointer first = task(inout(data)), second = others_task(inout(data));
        if (round == 0) first->on_configure([&](Device&, DeviceTask&) { gate.wait(); });
        second->only_on(other_->devices()[0]);
        runtime_->submit(first);
        other_->submit(second);
        if (round == 0) {
            EXPECT_EQ(second->status(), TaskStatus::kWaiting);
            gate.open();
        }
    }
    runtime_->finish();
    other_->finish();
    std::vector<int> values(100);
    data->read(values.data(), data->size());
    EXPECT_THAT(values, ::testing::Each(100));
}

TEST_F(TwoRuntimes, TellEachOtherWhatFails) {
    const auto data = buffer();
    const TaskPointer bad = task(inout(data)), needs = others_task(inout(data));
    Gate gate;
    bad->on_configure([&](Device&, DeviceTask&) {
        gate.wait();
        throw Error(ErrorCode::kBadInput, "no picture");
    });
    runtime_->submit(bad);
    other_->submit(needs);
    gate.open();
    EXPECT_THAT(failure([&] { other_->finish(); }), HasSubstr("no picture"));
    EXPECT_THAT(failure([&] { runtime_->finish(); }), HasSubstr("no picture"));
    EXPECT_EQ(needs->status(), TaskStatus::kFailed);
}

TEST_F(TwoRuntimes, WhatIsCancelledInOneIsCancelledInTheOther) {
    const auto data = buffer();
    const TaskPointer first = task(inout(data)), second = task(inout(data)), needs = others_task(inout(data));
    Gate gate;
    first->on_configure([&](Device&, DeviceTask&) { gate.wait(); });
    runtime_->submit(std::vector<TaskPointer>{first, second});
    other_->submit(needs);
    EXPECT_TRUE(second->cancel());
    EXPECT_EQ(needs->status(), TaskStatus::kCancelled);
    gate.open();
    other_->finish();
    runtime_->finish();
}

/// Throws where the test says.
class Refusing final : public Scheduler {
  public:
    void push(TaskPointer task) override {
        if (refuses_push) throw Error(ErrorCode::kLimit, "too many tasks");
        const std::lock_guard guard(mutex_);
        queue_.push_back(std::move(task));
    }
    TaskPointer pop(const Device&) override {
        const std::lock_guard guard(mutex_);
        if (queue_.empty()) return nullptr;
        TaskPointer task = std::move(queue_.front());
        queue_.pop_front();
        return task;
    }
    void wait_until_idle() override {}
    void submitted(std::span<const TaskPointer>, std::span<const Device* const>) override {
        if (refuses_batch) throw Error(ErrorCode::kLimit, "too large a batch");
    }
    std::atomic<bool> refuses_push{false}, refuses_batch{false};

  private:
    std::mutex mutex_;
    std::deque<TaskPointer> queue_;
};

TEST_F(DeviceGraph, WhatASchedulerRefusesFails) {
    const auto scheduler = std::make_shared<Refusing>();
    start({{.name = "one"}}, scheduler);
    const auto data = buffer();
    scheduler->refuses_push = true;
    runtime_->submit(std::vector<TaskPointer>{task(inout(data)), task(inout(data))});
    EXPECT_THAT(failure([&] { runtime_->finish(); }), HasSubstr("too many tasks"));
    scheduler->refuses_push = false;
    scheduler->refuses_batch = true;
    runtime_->submit(std::vector<TaskPointer>{task(inout(data)), task(inout(data))});
    EXPECT_THAT(failure([&] { runtime_->finish(); }), HasSubstr("too large a batch"));
    scheduler->refuses_batch = false;
    runtime_->submit(task(inout(data)));
    runtime_->finish();
    int value = 0;
    data->read(&value, sizeof value);
    EXPECT_EQ(value, 1);
}

TEST_F(DeviceGraph, WithoutThreadsForItsDevicesThereIsNoRuntime) {
    if (heddle::test::kSanitized) GTEST_SKIP() << "a sanitizer needs address space of its own";
    const auto with_little_room = [] {
        std::ifstream statm("/proc/self/statm");
        rlim_t pages = 0;
        statm >> pages;
        constexpr rlim_t kRoom = 256 << 20;
        const rlimit room{pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + kRoom, RLIM_INFINITY};
        ::setrlimit(RLIMIT_AS, &room);
        try {
            const DeviceRuntime runtime({.kinds = {}, .host_slots = 1000});
        } catch (const Error& error) {
            ::_exit(error.code() == ErrorCode::kLimit ? 0 : 1);
        }
        ::_exit(2);
    };
    EXPECT_EXIT(with_little_room(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace heddle::devices
