// Tasks wait without keeping their worker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "heddle/await.hpp"
#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "heddle/task.hpp"
#include "support/engines.hpp"
#include "support/sanitized.hpp"

namespace heddle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

RuntimeOptions with_workers(int workers) {
    RuntimeOptions options;
    options.workers = workers;
    return options;
}

/// Tasks that are paused before the last one lets them go on.
void expect_all_wait_at_once(Runtime& runtime, size_t tasks) {
    std::vector<BlockCondition> conditions(tasks);
    std::atomic<size_t> begun{0}, ended{0};
    Sequence sequence(runtime);
    for (BlockCondition& condition : conditions)
        sequence.insert([&] {
            ++begun;
            condition.block();
            ++ended;
        });
    // Comes to run only when all others are paused, with one worker.
    sequence.insert({.priority = -1}, [&] {
        for (BlockCondition& condition : conditions) condition.signal();
    });
    sequence.wait();
    EXPECT_EQ(begun, tasks);
    EXPECT_EQ(ended, tasks);
}

class PauseTest : public testing::TestWithParam<int> {
  protected:
    Runtime runtime_{with_workers(GetParam())};
};

TEST_P(PauseTest, ASignalMayPrecedeTheBlock) {
    BlockCondition condition;
    condition.signal();
    condition.block();
    condition.signal();
    EXPECT_THAT([&] { condition.signal(); }, ThrowsMessage<Error>(HasSubstr("signalled already")));
}

TEST_P(PauseTest, AThreadOutsideOfTasksSleeps) {
    BlockCondition condition;
    std::jthread other([&] { condition.signal(); });
    condition.block();
}

TEST_P(PauseTest, APausedTaskLeavesItsWorkerToOthers) {
    expect_all_wait_at_once(runtime_, test::kSanitized ? 500 : 10'000);
}

TEST_P(PauseTest, ATaskGoesOnWithItsExceptionsAndItsData) {
    BlockCondition condition;
    Scalar<int> result(runtime_);
    Sequence sequence(runtime_);
    sequence.insert(
        [&](int& value) {
            try {
                throw std::runtime_error("kept");
            } catch (const std::exception& error) {
                condition.block();
                value = std::string(error.what()) == "kept" ? 1 : 2;
            }
        },
        out(result));
    sequence.insert([&] { condition.signal(); });
    sequence.insert([](int& value) { value *= 10; }, inout(result));
    EXPECT_EQ(result.get(), 10);
}

TEST_P(PauseTest, TasksThatWaitForTheirChildrenDoNotNest) {
    const int parents = test::kSanitized ? 200 : 5'000;
    std::atomic<int> ran{0};
    Sequence sequence(runtime_);
    for (int i = 0; i < parents; ++i)
        sequence.insert([&] {
            Sequence children(runtime_);
            for (int k = 0; k < 4; ++k) children.insert([&] { ++ran; });
            children.wait();
            ++ran;
        });
    sequence.wait();
    EXPECT_EQ(ran, parents * 5);
}

TEST_P(PauseTest, ManyPausesUnderSignalsFromOutside) {
    const int rounds = test::kSanitized ? 50 : 2'000;
    constexpr int kTasks = 20;
    std::vector<BlockCondition> conditions(kTasks);
    std::vector<std::atomic<bool>> waiting(kTasks);
    std::atomic<int> left{kTasks};
    Sequence sequence(runtime_);
    for (size_t i = 0; i < kTasks; ++i)
        sequence.insert([&, i] {
            for (int round = 0; round < rounds; ++round) {
                waiting[i] = true;
                conditions[i].block();
            }
            --left;
        });
    std::jthread signaller([&] {
        for (size_t i = 0; left > 0; i = (i + 7) % kTasks)
            if (waiting[i].exchange(false)) conditions[i].signal();
    });
    sequence.wait();
}

TEST_P(PauseTest, ServicesArePolledUntilTheyAreDone) {
    struct Timer {
        BlockCondition condition;
        int calls = 0;
    } timer;
    register_polling_service(
        runtime_, "timer",
        [](void* data) {
            auto& it = *static_cast<Timer*>(data);
            if (++it.calls < 10) return false;
            it.condition.signal();
            return true;
        },
        &timer);
    Sequence sequence(runtime_);
    sequence.insert([&] { timer.condition.block(); });
    sequence.wait();
    EXPECT_EQ(timer.calls, 10);
    const PollingService nothing = [](void*) { return false; };
    register_polling_service(runtime_, "nothing", nothing, &timer);
    EXPECT_THAT([&] { register_polling_service(runtime_, "nothing", nothing, &timer); },
                ThrowsMessage<Error>(HasSubstr("registered with these data already")));
    unregister_polling_service(runtime_, nothing, &timer);
    EXPECT_THAT([&] { unregister_polling_service(runtime_, nothing, &timer); },
                ThrowsMessage<Error>(HasSubstr("not registered")));
}

TEST(PauseManyTest, AHundredThousandTasksOfOneWorkerArePausedAtOnce) {
    const size_t tasks = test::kSanitized ? 1'000 : 100'000;
    Runtime runtime(with_workers(1));
    std::vector<BlockCondition> conditions(tasks);
    size_t paused = 0, most = 0, ended = 0;  // one worker: one task at a time
    Sequence sequence(runtime);
    for (BlockCondition& condition : conditions)
        sequence.insert([&] {
            most = std::max(most, ++paused);
            condition.block();
            --paused;
            ++ended;
        });
    sequence.insert({.priority = -1}, [&] {
        for (BlockCondition& condition : conditions) condition.signal();
    });
    sequence.wait();
    EXPECT_EQ(most, tasks);
    EXPECT_EQ(ended, tasks);
}

TEST(PauseManyTest, AMillionPausesUnderRandomSignals) {
    const long pauses = test::kSanitized ? 5'000 : 1'000'000;
    constexpr size_t kTasks = 64;
    Runtime runtime(with_workers(2));
    std::vector<BlockCondition> conditions(kTasks);
    std::vector<std::atomic<bool>> asked(kTasks);
    std::atomic<long> begun{0}, made{0};
    std::atomic<size_t> left{kTasks};
    std::atomic<int> wrong{0};
    Sequence sequence(runtime);
    for (size_t i = 0; i < kTasks; ++i)
        sequence.insert([&, i] {
            double value = 1;
            std::mt19937 random(static_cast<unsigned>(i));
            while (begun++ < pauses) {
                asked[i] = true;
                conditions[i].block();
                value = value * 1.0000001;
                wrong += asked[i];
                ++made;
                const size_t other = random() % kTasks;  // tasks signal, too
                if (random() % 8 == 0 && asked[other].exchange(false)) conditions[other].signal();
            }
            wrong += value < 1;
            --left;
        });
    const auto signals = [&](unsigned seed) {
        std::mt19937 random(seed);
        while (left > 0) {
            const size_t i = random() % kTasks;
            if (asked[i].exchange(false)) conditions[i].signal();
        }
    };
    {
        std::jthread one(signals, 1), other(signals, 2);
        sequence.wait();
    }
    EXPECT_EQ(made, pauses);
    EXPECT_EQ(wrong, 0);
}

class WaitingOnEachEngine : public test::OnEachEngine {};
INSTANTIATE_TEST_SUITE_P(Engines, WaitingOnEachEngine, test::engines(), test::engine_name);

TEST_P(WaitingOnEachEngine, WhatEndedBeforeAPauseCountsWhereverItGoesOn) {
    Runtime runtime(options(2));
    // Other tasks wait meanwhile.
    std::vector<BlockCondition> held(2);
    Sequence holding(runtime), steps(runtime);
    for (BlockCondition& one : held) holding.insert([&] { one.block(); });
    Scalar<int> x(runtime, 0);
    const int rounds = test::kSanitized ? 20 : 200;
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < 5; ++i)
            steps.insert(
                [](int& value) {
                    ++value;
                    sleep_for(std::chrono::microseconds(20));
                },
                inout(x));
        steps.wait();
    }
    EXPECT_EQ(x.get(), 5 * rounds);
    for (BlockCondition& one : held) one.signal();
    holding.wait();
}

TEST_P(WaitingOnEachEngine, ManyTasksWaitAtOnce) {
    Runtime runtime(options(1));
    expect_all_wait_at_once(runtime, test::kSanitized ? 500 : 10'000);
}

INSTANTIATE_TEST_SUITE_P(Workers, PauseTest, testing::Values(1, 2));

}  // namespace
}  // namespace heddle
