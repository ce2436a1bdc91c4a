// Tasks that stand in line before their order is found: it is the order that the graph would have found, and
// whoever could run beside others does.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "heddle/error.hpp"
#include "heddle/future.hpp"
#include "heddle/pause.hpp"
#include "heddle/task.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle {
namespace {

RuntimeOptions workers(int count) {
    return {.engine = "native", .cpus = {}, .workers = count};
}

/// On one worker, and on two where there are as many CPUs.
class TaskLineTest : public testing::TestWithParam<int> {
  protected:
    void SetUp() override {
        if (runtime_.cpus().count() < GetParam()) GTEST_SKIP() << "this process may use one CPU only";
    }
    Runtime runtime_{workers(GetParam())};
    Sequence sequence_{runtime_};
};

INSTANTIATE_TEST_SUITE_P(Workers, TaskLineTest, testing::Values(1, 2),
                         [](const auto& workers) { return workers.param == 1 ? "one" : "two"; });

TEST(TaskLine, OneWorkerRunsAllInTheOrderOfInsertion) {
    Runtime runtime(workers(1));
    Scalar<int> x(runtime, 0), y(runtime, 0);
    Sequence sequence(runtime);
    std::vector<int> order;
    for (int i = 0; i < 10'000; ++i) {
        if (i % 2 == 0)
            sequence.insert([&order](int&, int k) { order.push_back(k); }, inout(x), value(i));
        else
            sequence.insert([&order](int&, int k) { order.push_back(k); }, inout(y), value(i));
    }
    sequence.wait();
    ASSERT_EQ(order.size(), 10'000U);
    for (int i = 0; i < 10'000; ++i) ASSERT_EQ(order[static_cast<size_t>(i)], i);
    EXPECT_GE(runtime.state().graph.started_in_line(), 10'000U) << "some were entered, whom nobody disturbed";
}

TEST_P(TaskLineTest, WhatWaitsForOneBehindItIsPaused) {
    Scalar<int> x(runtime_, 0), y(runtime_, 0);
    for (int round = 0; round < 200; ++round) {
        BlockCondition condition;
        sequence_.insert(
            [&condition](int& v) {
                condition.block();
                ++v;
            },
            inout(x));
        for (int i = 0; i < 10; ++i) sequence_.insert([](int& v) { ++v; }, inout(x));
        sequence_.insert([&condition](int&) { condition.signal(); }, inout(y));
        sequence_.wait();
    }
    EXPECT_EQ(x.get(), 200 * 11);
}

TEST(TaskLine, WhatWaitsBusilyForOneFarBehindItFindsItThere) {
    Runtime runtime(workers(2));
    if (runtime.cpus().count() < 2) GTEST_SKIP() << "this process may use one CPU only";
    Scalar<int> x(runtime, 0), y(runtime, 0);
    Sequence sequence(runtime);
    for (int round = 0; round < 50; ++round) {
        for (int i = 0; i < 1'000; ++i) sequence.insert([](int& v) { ++v; }, inout(y));
        std::atomic<bool> there{false};
        sequence.insert(
            [&there](int&) {
                while (!there.load()) std::this_thread::yield();
            },
            inout(x));
        for (int i = 0; i < 1'000; ++i) sequence.insert([](int& v) { ++v; }, inout(x));
        sequence.insert([&there](int&) { there = true; }, inout(y));
        sequence.wait();
    }
    EXPECT_EQ(x.get(), 50'000);
    EXPECT_EQ(y.get(), 50'000);
}

TEST_P(TaskLineTest, WhatCannotStandComesBehindThoseWhoDo) {
    Scalar<int> x(runtime_, 0), sum(runtime_, 0);
    for (int round = 0; round < 500; ++round) {
        for (int i = 0; i < 20; ++i) sequence_.insert([](int& v) { v = v % 1000 * 3 + 1; }, inout(x));
        sequence_.insert(
            {.priority = 1}, [](int& v) { v = 7; }, inout(x));
        sequence_.insert([](int& v) { v += 2; }, inout(x));
        sequence_.insert([](int& v) { v = 2 * v; }, commute(x));
        sequence_.insert([](const int& from, int& to) { to += from; }, in(x), inout(sum));
    }
    sequence_.wait();
    EXPECT_EQ(x.get(), 18);
    EXPECT_EQ(sum.get(), 500 * 18);
}

TEST_P(TaskLineTest, ErrorsCancelThoseBehindThatReadWhatWasNotWritten) {
    Scalar<int> x(runtime_, 0), y(runtime_, 0);
    std::atomic<int> ran{0};
    sequence_.insert([](int&) { throw std::runtime_error("broken"); }, out(x));
    for (int i = 0; i < 50; ++i) {
        sequence_.insert([&ran](const int&) { ++ran; }, in(x));
        sequence_.insert([](int& v) { ++v; }, inout(y));
    }
    sequence_.insert([](int& v) { v = 5; }, out(x));
    sequence_.insert([&ran](const int& v) { ran += v; }, in(x));
    EXPECT_THROW(sequence_.wait(), std::runtime_error);
    EXPECT_EQ(ran, 5);
    EXPECT_EQ(y.get(), 50);
}

TEST_P(TaskLineTest, ThoseThatNobodyWaitsForEnd) {
    Scalar<int> x(runtime_, 0);
    std::atomic<int> ended{0};
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 5'000; ++i) sequence_.insert([&ended](int&) { ++ended; }, inout(x));
        while (ended.load() < 5'000 * (round + 1)) std::this_thread::yield();
    }
}

TEST_P(TaskLineTest, ThreadsThatInsertTheSameDataGetOneOrder) {
    constexpr int kThreads = 4, kTasks = 20'000;
    Scalar<int> x(runtime_, 0), y(runtime_, 0);
    int same = 0;  // of tasks that use both: never at once
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            Sequence own(runtime_);
            for (int i = 0; i < kTasks; ++i) {
                if ((i + t) % 3 == 0)
                    own.insert([&same](int& a, int& b) { same += ++a - ++b == 0 ? 1 : 0; }, inout(x),
                               inout(y));
                else
                    own.insert([](const int&, const int&) {}, in(y), in(x));
            }
            own.wait();
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(same, x.get());
    EXPECT_EQ(x.get(), y.get());
}

TEST_P(TaskLineTest, TasksThatTasksInsertStandBehindTheirs) {
    Scalar<int> x(runtime_, 0);
    for (int round = 0; round < 100; ++round) {
        sequence_.insert(
            [this, &x](int& v) {
                for (int i = 0; i < 10; ++i) sequence_.insert([](int& w) { w *= 2; }, inout(x));
                v = 1;
            },
            inout(x));
        sequence_.wait();
        EXPECT_EQ(x.get(), 1024);
    }
}

/// Where others look for work meanwhile, what they look at is there.
TEST_P(TaskLineTest, FuturesThatNobodyKeepsGoWithTheirTasks) {
    Scalar<int> x(runtime_, 0);
    int sum = 0;
    for (int i = 0; i < 5'000; ++i) {
        const Future<int> four = sequence_.async([](int& v) { return ++v > 0 ? 4 : 0; }, inout(x));
        sequence_.insert([](int& v) { ++v; }, inout(x));
        sequence_.insert([&sum](int of_four, int&) { sum += of_four; }, in(four), inout(x));
    }
    sequence_.wait();
    EXPECT_EQ(x.get(), 10'000);
    EXPECT_EQ(sum, 20'000);
}

TEST_P(TaskLineTest, DataMayGoInTheTaskThatUsesThem) {
    Scalar<int> x(runtime_, 0);
    for (int i = 0; i < 1'000; ++i) {
        auto* const own = new Scalar<int>(runtime_, 0);
        sequence_.insert([own](int&) { delete own; }, inout(*own));
        for (int k = 0; k < 3; ++k) sequence_.insert([](int& v) { ++v; }, inout(x));
    }
    sequence_.wait();
    EXPECT_EQ(x.get(), 3'000);
}

}  // namespace
}  // namespace heddle
