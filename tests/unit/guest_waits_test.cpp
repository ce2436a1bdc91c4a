// Tasks on threads of oneTBB and OpenMP that wait: for other runtimes', and inside constructs of theirs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>

#include "heddle/await.hpp"
#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "heddle/task.hpp"
#include "support/engines.hpp"
#include "support/kernels.hpp"
#include "support/sanitized.hpp"

namespace heddle {
namespace {

using testing::HasSubstr;

class GuestWaits : public test::OnEachEngine {};
INSTANTIATE_TEST_SUITE_P(Engines, GuestWaits, testing::Values("openmp", "openmp-libomp", "tbb"),
                         test::engine_name);

/// A thread that stayed with its paused task, as tasks that oneTBB suspends do, would be missed by the other
/// runtime once in some thousand rounds.
TEST_P(GuestWaits, TasksOfTwoRuntimesWaitForEachOther) {
    const int rounds = test::kSanitized ? 200 : 4'000;
    for (const int workers : {1, 2}) {
        Runtime one(options(workers)), other(options(workers));
        std::atomic<int> ran{0};
        for (int round = 0; round < rounds; ++round) {
            Sequence above(one);
            for (int i = 0; i < workers; ++i)
                above.insert([&] {
                    Sequence between(other);
                    between.insert([&] {
                        Sequence below(one);
                        below.insert([&] { ++ran; });
                        below.wait();
                    });
                    between.wait();
                });
            above.wait();
        }
        EXPECT_EQ(ran, rounds * workers);
    }
}

TEST_P(GuestWaits, InsideAConstructOfTheRuntimeAPauseIsRefused) {
    Runtime runtime(options(2));
    Sequence sequence(runtime);
    BlockCondition signalled_later;
    std::atomic<bool> refused{false}, child_ran{false}, slept{false}, went_on{false};
    sequence.insert([&] {
        // One item is the calling thread's.
        test::in_parallel(GetParam(), 1, [&](int) {
            try {
                signalled_later.block();
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), ErrorCode::kLimit);
                EXPECT_THAT(error.what(), HasSubstr("let it wait before or after"));
                refused = true;
            }
            sleep_for(std::chrono::milliseconds(1));  // as its thread
            slept = true;
            {
                Sequence children(runtime);
                children.insert([&] { child_ran = true; });
            }
            EXPECT_TRUE(child_ran);
        });
        sequence.insert([&] { signalled_later.signal(); });
        signalled_later.block();
        went_on = true;
    });
    sequence.wait();
    EXPECT_TRUE(refused);
    EXPECT_TRUE(slept);
    EXPECT_TRUE(went_on);
}

/// A destructor that waits there runs others on top; one of these that was woken, and waits again, is in none
/// itself.
TEST_P(GuestWaits, OneThatGoesOnWhereAnotherWaitsInAConstructMayPauseAgain) {
    Runtime runtime(options(1));
    Sequence sequence(runtime);
    std::array<BlockCondition, 2> conditions;
    std::atomic<bool> first_passed{false}, ended{false};
    sequence.insert([&] {
        conditions[0].block();
        first_passed = true;
        conditions[1].block();
        ended = true;
    });
    sequence.insert([&] {
        test::in_parallel(GetParam(), 1, [&](int) {
            Sequence children(runtime);
            children.insert([&] { conditions[0].signal(); });
            children.insert([] {});
        });
    });
    sequence.insert({.priority = -1}, [&] { conditions[1].signal(); });
    sequence.wait();
    EXPECT_TRUE(first_passed);
    EXPECT_TRUE(ended);
}

/// With oneTBB, a task that waits in an algorithm is a place where other tasks run, on stacks of their own.
TEST_P(GuestWaits, TasksThatUseConstructsOfTheRuntimePauseInBetween) {
    Runtime runtime(options(2));
    Sequence sequence(runtime);
    const int tasks = test::kSanitized ? 20 : 200;
    std::atomic<int> items{0};
    for (int i = 0; i < tasks; ++i)
        sequence.insert([&] {
            for (int part = 0; part < 3; ++part) {
                test::in_parallel(GetParam(), 50, [&](int) { ++items; });
                sleep_for(std::chrono::microseconds(50));
            }
        });
    sequence.wait();
    EXPECT_EQ(items, tasks * 3 * 50);
}

}  // namespace
}  // namespace heddle
