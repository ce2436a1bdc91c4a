// Threads that insert: many of them, and such as have sequences of their own until they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include "heddle/error.hpp"
#include "heddle/task.hpp"
#include "support/engines.hpp"
#include "support/sanitized.hpp"

namespace heddle {
namespace {

class InsertingThreadsTest : public test::ARuntimeOnEachEngine {};
INSTANTIATE_TEST_SUITE_P(Engines, InsertingThreadsTest, test::engines(), test::engine_name);

/// Those that are too many are told; the engine's own threads, which may begin after them, are not of them.
TEST_P(InsertingThreadsTest, TooManyAreToldAndTheOthersServed) {
    if (test::kSanitized) GTEST_SKIP() << "skipped: so many threads are too much for a sanitizer";
    constexpr int kMost = 1'024, kThreads = kMost + 6;
    std::latch all_have_tried(kThreads);
    std::atomic<int> ran{0}, refused{0};
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&] {
            Sequence sequence(runtime_);
            try {
                sequence.insert([&] { ++ran; });
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), ErrorCode::kLimit);
                EXPECT_THAT(error.what(), testing::HasSubstr("1024 threads use this runtime already"));
                ++refused;
            }
            all_have_tried.arrive_and_wait();
            sequence.wait();
        });
    threads.clear();
    EXPECT_EQ(ran, kMost);
    EXPECT_EQ(refused, kThreads - kMost);
    // What they had is for others now.
    Sequence sequence(runtime_);
    sequence.insert([&] { ++ran; });
    sequence.wait();
    EXPECT_EQ(ran, kMost + 1);
}

/// Its destructor waits, when the thread has destroyed what it made later.
TEST_P(InsertingThreadsTest, AThreadsOwnSequenceEndsWithIt) {
    std::atomic<int> ran{0};
    for (int round = 0; round < 20; ++round) {
        std::jthread first([&] {
            thread_local std::optional<Sequence> own;
            own.emplace(runtime_);
            for (int i = 0; i < 100; ++i) own->insert([&] { ++ran; });
        });
        std::jthread second([&] {
            Sequence sequence(runtime_);
            for (int i = 0; i < 100; ++i) sequence.insert([&] { ++ran; });
        });
    }
    EXPECT_EQ(ran, 20 * 200);
}

}  // namespace
}  // namespace heddle
