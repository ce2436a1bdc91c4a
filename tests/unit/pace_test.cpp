// When a worker of the native engine naps; and that it is back where it is needed.
#include "engines/native/pace.hpp"
#include "engines/native/fine_tasks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "engines/native/lane_counts.hpp"
#include "heddle/task.hpp"
#include "tasks/runtime_state.hpp"

using namespace heddle;
using namespace std::chrono_literals;

namespace {

using Advice = Pace::Advice;

class PaceTest : public testing::Test {
  protected:
    PaceTest() { (void)pace_.ran(look_); }

    /// So many tasks of each kind in a window that takes so long.
    void pass(uint64_t handed, uint64_t others, Nanoseconds took = 20us) {
        look_.handed += handed;
        look_.others += others;
        look_.now += took;
    }
    [[nodiscard]] Advice ran() { return pace_.ran(look_); }
    [[nodiscard]] bool napped() { return pace_.napped(look_); }
    [[nodiscard]] bool found_none(bool alone) { return pace_.found_none(look_, alone); }

    Pace pace_;
    Pace::Look look_{.now = Time(1s), .handed = 1000, .others = 5000, .fine = 400ns};
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

TEST_F(PaceTest, WhatIsFineIsForTheMachineToSay) {
    look_.fine = 80ns;
    pass(100, 1000);
    EXPECT_EQ(ran(), Advice::kGoOn);
    pass(500, 1000);
    EXPECT_EQ(ran(), Advice::kNap);
}

TEST_F(PaceTest, FineTasksThatNobodyElseRunsAreRun) {
    pass(1000, 10);
    EXPECT_EQ(ran(), Advice::kGoOn);
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

/// Neither fine nor coarse: tasks of 500 ns each on both threads.
TEST_F(PaceTest, WhereTasksMayBeSlowBecauseTheyAreHandedOverItTriesHowOthersDoAlone) {
    const auto together = [&] { pass(40, 40); };
    for (int i = 0; i < 4; ++i) {
        together();
        EXPECT_EQ(ran(), Advice::kGoOn) << i;
    }
    EXPECT_EQ(pace_.longest_nap(500us), 500us);
    together();
    ASSERT_EQ(ran(), Advice::kNap);
    EXPECT_EQ(pace_.longest_nap(500us), 50us);
    pass(0, 1000, 50us);
    EXPECT_TRUE(napped());
    EXPECT_EQ(pace_.longest_nap(500us), 500us);
    for (int i = 0; i < 63; ++i) {
        pass(4, 4, 2us);
        ASSERT_EQ(ran(), Advice::kNap) << "as they were, after nap " << i;
        pass(0, 5000, 500us);
        EXPECT_TRUE(napped());
    }
    // Now and then it asks again, and those who are slower alone than they were together are helped.
    pass(0, 1000, 500us);
    EXPECT_FALSE(napped());
    together();
    EXPECT_EQ(ran(), Advice::kGoOn);
}

TEST_F(PaceTest, WhoIsOfUseTriesItLessAndLess) {
    int windows[] = {0, 0, 0};
    for (int& until_trial : windows) {
        do {
            pass(40, 40);
            ++until_trial;
        } while (ran() == Advice::kGoOn);
        pass(0, 100, 50us);  // half of what both did
        EXPECT_FALSE(napped());
    }
    EXPECT_THAT(windows, testing::ElementsAre(5, 10, 20));
}

TEST_F(PaceTest, TasksThatHaveBecomeCoarseEndWhatATrialHasShown) {
    for (int i = 0; i < 5; ++i) {
        pass(40, 40);
        (void)ran();
    }
    pass(0, 1000, 50us);
    EXPECT_TRUE(napped());
    pass(4, 4, 8us);
    EXPECT_EQ(ran(), Advice::kCoarse);
    pass(40, 40);
    EXPECT_EQ(ran(), Advice::kGoOn);
}

TEST_F(PaceTest, TheOnlyWorkerLeavesItsCpuToWhoInserts) {
    pass(1, 1, 5us);
    EXPECT_FALSE(found_none(false));
    pass(1, 1, 5us);
    EXPECT_TRUE(found_none(true));
    pass(1, 1, 100us);
    EXPECT_FALSE(found_none(true));
}

class FineTasksTest : public testing::Test {
  protected:
    ~FineTasksTest() override {
        lanes_.release(own_);
        lanes_.release(other_);
    }
    Runtime runtime_;
    LaneTable& lanes_ = *runtime_.state().lanes;
    Lane& own_ = lanes_.acquire(false);
    Lane& other_ = lanes_.acquire(false);
    void look() { (void)look_around(lanes_, own_, fine_, watch_); }

    FineTasks fine_;
    FineTasks::Watch watch_;
};

TEST_F(FineTasksTest, OneInterruptedReadOfTheClockIsSoonForgotten) {
    fine_.saw(-10ms);
    for (int i = 0; i < 32; ++i) fine_.saw(110ns);
    EXPECT_GT(fine_.limit(), 300ns);
    EXPECT_LT(fine_.limit(), 340ns);
}

TEST_F(FineTasksTest, CountsThatAreReadAtOnceMakeTheLimitFall) {
    EXPECT_GT(fine_.limit(), 390ns) << "before anybody has looked CPUs are far apart";
    for (int i = 0; i < 500; ++i) {
        count_one(other_.ran);  // which this cache has
        look();
    }
    EXPECT_LT(fine_.limit(), 300ns);
}

TEST_F(FineTasksTest, WhatNobodyHasWrittenTellsNothing) {
    const Nanoseconds before = fine_.limit();
    for (int i = 0; i < 100; ++i) look();
    EXPECT_EQ(fine_.limit(), before);
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
