// When a worker of the native engine naps; and that it is back where it is needed.
#include "engines/native/pace.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "heddle/task.hpp"

using namespace heddle;
using namespace std::chrono_literals;

namespace {

using Advice = Pace::Advice;

class PaceTest : public testing::Test {
  protected:
    PaceTest() { (void)pace_.ran(now_, counts_); }

    /// So many tasks of each kind in a window that takes so long.
    void pass(uint64_t handed, uint64_t others, Nanoseconds took = 20us) {
        counts_.handed += handed;
        counts_.others += others;
        now_ += took;
    }
    [[nodiscard]] Advice ran() { return pace_.ran(now_, counts_); }
    [[nodiscard]] bool napped() { return pace_.napped(now_, counts_); }
    [[nodiscard]] bool found_none(bool alone) { return pace_.found_none(now_, counts_, alone); }

    Pace pace_;
    Time now_{1s};
    Pace::Counts counts_{1000, 5000};
};

TEST_F(PaceTest, AWorkerNapsWhileOthersAreAsFastWithFineTasks) {
    pass(100, 100, 5us);
    EXPECT_EQ(ran(), Advice::kGoOn) << "a window is longer";
    pass(100, 100, 5us);
    EXPECT_EQ(ran(), Advice::kNap);
}

TEST_F(PaceTest, CoarseTasksAreForEverybody) {
    pass(10, 1000);
    EXPECT_EQ(ran(), Advice::kCoarse);
}

TEST_F(PaceTest, FineTasksThatNobodyElseRunsAreRun) {
    pass(1000, 10);
    EXPECT_EQ(ran(), Advice::kCoarse);
}

TEST_F(PaceTest, WhatAWorkerInsertsItselfIsItsOwn) {
    pass(static_cast<uint64_t>(-5), 1000);  // it ran 95 and inserted 100
    EXPECT_EQ(ran(), Advice::kCoarse);
}

TEST_F(PaceTest, AWindowWithASleepInItTellsNothing) {
    pass(1'000'000, 1'000'000, 2ms);
    EXPECT_EQ(ran(), Advice::kCoarse);
}

TEST_F(PaceTest, AfterANapAFewTasksDecide) {
    pass(0, 10'000, 500us);
    EXPECT_TRUE(napped());
    EXPECT_TRUE(pace_.probing());
    pass(4, 10, 1us);
    EXPECT_EQ(ran(), Advice::kNap);
    pass(0, 10'000, 500us);
    EXPECT_TRUE(napped());
    pass(4, 10, 8us);
    EXPECT_EQ(ran(), Advice::kCoarse);
    EXPECT_FALSE(pace_.probing());
}

TEST_F(PaceTest, AfterANapWithoutTasksItNapsAgainWhileOthersGoOn) {
    pass(0, 10'000, 500us);
    EXPECT_TRUE(napped());
    EXPECT_TRUE(found_none(false));
    pass(0, 10, 500us);
    EXPECT_FALSE(napped());
    EXPECT_FALSE(found_none(false));
}

TEST_F(PaceTest, TheOnlyWorkerLeavesItsCpuToWhoInserts) {
    pass(1, 1, 5us);
    EXPECT_FALSE(found_none(false));
    pass(1, 1, 5us);
    EXPECT_TRUE(found_none(true));
    pass(1, 1, 100us);
    EXPECT_FALSE(found_none(true));
}

TEST(NativePaceTest, AfterManyFineTasksTwoCoarseOnesRunAtOnce) {
    Runtime runtime;
    if (runtime.cpus().count() < 2) GTEST_SKIP() << "this process may use one CPU only";
    Sequence sequence(runtime);
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 20'000; ++i) sequence.insert([] {});
        std::atomic<int> there = 0;
        for (int i = 0; i < 2; ++i)
            sequence.insert([&there] {
                ++there;
                while (there.load() < 2) std::this_thread::yield();
            });
        sequence.wait();
    }
}

TEST(NativePaceTest, FineTasksThatNobodyWaitsForEnd) {
    Runtime runtime({.engine = "native", .cpus = {}, .workers = 1});
    Sequence sequence(runtime);
    std::atomic<int> ended = 0;
    for (int i = 0; i < 100'000; ++i)
        sequence.insert([&ended] { ended.fetch_add(1, std::memory_order_relaxed); });
    while (ended.load() < 100'000) std::this_thread::yield();
}

}  // namespace
