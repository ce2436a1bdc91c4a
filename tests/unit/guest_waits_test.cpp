// Tasks on threads of oneTBB and OpenMP that wait: for other runtimes', and inside constructs of theirs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>

#include "heddle/await.hpp"
#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "heddle/task.hpp"
#include "support/engines.hpp"
#include "support/kernels.hpp"
#include "support/sanitized.hpp"
#include "support/wait_until.hpp"

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

/// Two of the tasks that follow could run at once: the second is not given to the construct's own threads.
TEST_P(GuestWaits, OneThatOthersFollowEndsOnTopOfOneThatWaitsInAConstruct) {
    for (const int workers : {1, 2}) {
        Runtime runtime(options(workers));
        Sequence sequence(runtime);
        std::atomic<int> ran{0};
        sequence.insert([&] {
            Scalar<int> data(runtime, 0);
            BlockCondition signalled;
            std::atomic<bool> blocks{false};
            auto children = std::make_unique<Sequence>(runtime);
            children->insert(
                [&](int&) {
                    blocks = true;
                    signalled.block();
                },
                out(data));
            for (int i = 0; i < 3; ++i) children->insert([&](const int&) { ++ran; }, in(data));
            while (!blocks) sleep_for(std::chrono::microseconds(100));
            test::in_parallel(GetParam(), 1, [&](int) {
                signalled.signal();
                children.reset();
            });
        });
        sequence.wait();
        EXPECT_EQ(ran, 3);
    }
}

/// Of two tasks that could run, the thread goes on with one, which waits for the other.
TEST_P(GuestWaits, WhatWasLeftForOthersIsRunOnTopOfOneThatWaitsForItInAConstruct) {
    for (const int workers : {1, 2}) {
        Runtime runtime(options(workers));
        Scalar<int> data(runtime, 0);
        BlockCondition inserted;
        std::atomic<int> ran{0};
        Sequence first(runtime);
        auto second = std::make_unique<Sequence>(runtime);
        first.insert([&](int&) { inserted.block(); }, out(data));
        first.insert(
            [&](const int&) {
                test::in_parallel(GetParam(), 1, [&](int) { second.reset(); });
                EXPECT_EQ(ran, 2);
            },
            in(data));
        for (int i = 0; i < 2; ++i) second->insert([&](const int&) { ++ran; }, in(data));
        inserted.signal();
        first.wait();
        EXPECT_EQ(ran, 2);
    }
}

/// A task that runs on top of one that waits in a construct may wait itself.
TEST_P(GuestWaits, OneThatRunsOnTopOfAnotherMayPause) {
    Runtime runtime(options(1));
    Sequence sequence(runtime), others(runtime);
    BlockCondition signalled;
    std::atomic<bool> went_on{false};
    sequence.insert([&] {
        auto children = std::make_unique<Sequence>(runtime);
        others.insert([&] {
            signalled.block();
            went_on = true;
        });
        children->insert([&] { signalled.signal(); });
        test::in_parallel(GetParam(), 1, [&](int) { children.reset(); });
    });
    sequence.wait();
    EXPECT_NO_THROW(others.wait());
    EXPECT_TRUE(went_on);
}

TEST_P(GuestWaits, TasksThatAreWokenTogetherGoOnSideBySide) {
    Runtime runtime(options(2));
    if (runtime.cpus().count() < 2) GTEST_SKIP() << "skipped: two CPUs are needed";
    for (int round = 0; round < 20; ++round) {
        Sequence sequence(runtime), source(runtime);
        BlockCondition start;
        const Future<int> future = source.async([&] {
            start.block();
            return 7;
        });
        std::atomic<int> waiting{0}, together{0};
        for (int i = 0; i < 2; ++i)
            sequence.insert([&] {
                ++waiting;
                EXPECT_EQ(future.get(), 7);
                ++together;
                EXPECT_TRUE(test::becomes_true([&] { return together == 2; }, std::chrono::seconds(60)));
            });
        EXPECT_TRUE(test::becomes_true([&] { return waiting == 2; }, std::chrono::seconds(60)));
        start.signal();
        sequence.wait();
    }
}

/// Whoever calls the services may be the only thread there is.
TEST_P(GuestWaits, AServiceMayDestroyASequenceThatHasTasks) {
    for (const int workers : {1, 2}) {
        Runtime runtime(options(workers));
        std::atomic<int> ran{0};
        std::atomic<bool> called{false};
        struct Service {
            Runtime& runtime;
            std::atomic<int>& ran;
            std::atomic<bool>& called;
        } service{runtime, ran, called};
        register_polling_service(
            runtime, "destroys a sequence",
            [](void* argument) {
                auto& its = *static_cast<Service*>(argument);
                {
                    Sequence children(its.runtime);
                    for (int i = 0; i < 10; ++i) children.insert([&its] { ++its.ran; });
                }
                its.called = true;
                return true;
            },
            &service);
        EXPECT_TRUE(test::becomes_true([&] { return called.load(); }, std::chrono::seconds(60)));
        EXPECT_EQ(ran, 10);
    }
}

/// The algorithm in which the first tasks were inserted ends by an exception, which cancels what belongs to
/// it.
TEST_P(GuestWaits, TasksThatWereInsertedInAConstructThatFailsRun) {
    if (engine_.name != "tbb") GTEST_SKIP() << "skipped: an exception does not leave a region of OpenMP";
    Runtime runtime(options(2));
    Scalar<int> data(runtime, 0);
    Sequence sequence(runtime);
    BlockCondition failed;
    std::atomic<int> ran{0};
    const auto inserts_and_fails = [&](int item) {
        if (item != 0) return;
        sequence.insert([&](int&) { failed.block(); }, out(data));
        for (int i = 0; i < 10; ++i) sequence.insert([&](const int&) { ++ran; }, in(data));
        throw std::runtime_error("fails");
    };
    EXPECT_THROW(test::in_parallel(GetParam(), 50, inserts_and_fails), std::runtime_error);
    failed.signal();
    sequence.wait();
    EXPECT_EQ(ran, 10);
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
