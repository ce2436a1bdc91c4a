// Threads of the program's that stand in for those of a runtime (src/engines/guests): where tasks are fine,
// who waits for them runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "heddle/pause.hpp"
#include "heddle/task.hpp"
#include "support/engines.hpp"
#include "support/kernels.hpp"
#include "support/sanitized.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

class Substitutes : public test::OnEachEngine {
  protected:
    void SetUp() override {
        if (test::kSanitized) GTEST_SKIP() << "skipped: with a sanitizer no task is fine";
        test::OnEachEngine::SetUp();
    }
    /// Has fine tasks made, a round after the other, until `body` was called in one that this thread ran.
    void run_until_here(Runtime& runtime, const std::function<void()>& body) {
        const std::thread::id here = std::this_thread::get_id();
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        int64_t inserted = 0;
        std::atomic<bool> was_here{false};
        Scalar<int64_t> count(runtime, 0);
        while (!was_here && std::chrono::steady_clock::now() < deadline) {
            Sequence sequence(runtime);
            for (int i = 0; i < 20'000; ++i, ++inserted)
                sequence.insert(
                    [&, here](int64_t& value) {
                        ++value;
                        if (was_here || std::this_thread::get_id() != here) return;
                        was_here = true;
                        body();
                    },
                    inout(count));
            sequence.wait();
        }
        EXPECT_TRUE(was_here) << "no task was run by who inserted it, in " << inserted;
        EXPECT_EQ(count.get(), inserted);
    }
};
INSTANTIATE_TEST_SUITE_P(Engines, Substitutes, testing::Values("openmp", "openmp-libomp", "tbb"),
                         test::engine_name);

class Guests : public test::OnEachEngine {};
INSTANTIATE_TEST_SUITE_P(Engines, Guests, testing::Values("openmp", "openmp-libomp", "tbb"),
                         test::engine_name);

TEST_P(Substitutes, WhoWaitsRunsFineTasksWhereTheEngineMayRunThem) {
    const CpuSet before = thread_affinity();
    RuntimeOptions last = options(1);
    last.cpus = CpuSet{before.last()};
    Runtime runtime(last);
    CpuSet there;
    run_until_here(runtime, [&] { there = thread_affinity(); });
    EXPECT_EQ(there, last.cpus);
    EXPECT_EQ(thread_affinity(), before) << "it is back where it was";
}

TEST_P(Substitutes, ATaskThatPausesThereGoesOn) {
    Runtime runtime(options(2));
    for (int round = 0; round < 10; ++round) {
        BlockCondition signalled;
        Sequence signals(runtime);
        bool went_on = false;
        run_until_here(runtime, [&] {
            signals.insert([&] { signalled.signal(); });
            signalled.block();
            went_on = true;
        });
        EXPECT_TRUE(went_on);
        signals.wait();
    }
}

TEST_P(Substitutes, WhatATaskOpensThereIsNoWiderThanOnThreadsOfTheEngine) {
    if (engine_.name == "tbb") GTEST_SKIP() << "skipped: an arena of oneTBB is as wide as it is for all";
    Runtime runtime(options());
    std::mutex mutex;
    std::set<std::thread::id> threads;
    run_until_here(runtime, [&] {
        test::in_parallel(GetParam(), 16, [&](int) {
            const std::lock_guard guard(mutex);
            threads.insert(std::this_thread::get_id());
        });
    });
    EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
}

/// Fine tasks and coarse ones, some of which pause, of several threads at once: whoever runs which.
TEST_P(Guests, ManyThreadsInsertAndWaitAtOnce) {
    Runtime runtime(options());
    constexpr int kRounds = test::kSanitized ? 3 : 20;
    std::vector<std::thread> threads;
    for (uint32_t seed = 0; seed < 4; ++seed)
        threads.emplace_back([&, seed] {
            std::mt19937 random(seed);
            for (int round = 0; round < kRounds; ++round) {
                Scalar<int> chained(runtime, 0);
                std::atomic<int> alone{0};
                std::deque<BlockCondition> conditions;
                Sequence sequence(runtime), signals(runtime);
                const int tasks = static_cast<int>(random() % 6'000);
                int chain = 0, free = 0;
                for (int i = 0; i < tasks; ++i) {
                    const auto kind = random() % 1'000;
                    if (kind < 2) {
                        BlockCondition& condition = conditions.emplace_back();
                        sequence.insert([&](int& value) { condition.block(), ++value; }, inout(chained));
                        signals.insert({.priority = 1}, [&] { condition.signal(); });
                        ++chain;
                    } else if (kind < 4) {
                        sequence.insert([&] {
                            std::this_thread::sleep_for(std::chrono::microseconds(100));
                            ++alone;
                        });
                        ++free;
                    } else if (kind < 500) {
                        sequence.insert([&] { ++alone; });
                        ++free;
                    } else {
                        sequence.insert([](int& value) { ++value; }, inout(chained));
                        ++chain;
                    }
                }
                sequence.wait();
                signals.wait();
                EXPECT_EQ(alone, free);
                EXPECT_EQ(chained.get(), chain);
            }
        });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace heddle
