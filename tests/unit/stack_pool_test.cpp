#include "fibers/stack_pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "heddle/error.hpp"
#include "support/paused.hpp"
#include "support/sanitized.hpp"

using heddle::Error;
using heddle::ErrorCode;
using heddle::Stack;
using heddle::StackCache;
using heddle::StackPool;
using heddle::test::Paused;

namespace {

constexpr size_t kKiB = 1024;

size_t mappings() {
    std::ifstream file("/proc/self/maps");
    return static_cast<size_t>(
        std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n'));
}

char* above(void* base, size_t bytes) {
    return static_cast<char*>(base) + bytes;
}

char* below(void* top, size_t bytes) {
    return static_cast<char*>(top) - bytes;
}

}  // namespace

TEST(StackPool, RefusesSizesThatCannotBe) {
    for (const size_t bytes : {size_t{0}, 8 * kKiB, 48 * kKiB, 64 * kKiB + 1, size_t{2} << 30}) {
        try {
            const StackPool pool({.stack_bytes = bytes});
            ADD_FAILURE() << bytes;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
            EXPECT_THAT(error.what(), testing::HasSubstr(std::to_string(bytes) + " bytes"));
        }
    }
}

TEST(StackPool, StacksAreOfTheSizeAskedForAndApart) {
    for (const size_t bytes : {16 * kKiB, 64 * kKiB, 256 * kKiB, 2048 * kKiB}) {
        StackPool pool({.stack_bytes = bytes});
        StackCache cache(pool);
        std::set<char*> bottoms;
        std::vector<Stack*> taken;
        for (int i = 0; i < 100; ++i) {
            taken.push_back(&cache.take());
            const heddle::StackSpan span = taken.back()->span();
            EXPECT_GE(static_cast<char*>(span.top), above(span.bottom, bytes - 2 * kKiB));
            EXPECT_LE(static_cast<char*>(span.top), above(span.bottom, bytes));
            EXPECT_TRUE(bottoms.insert(static_cast<char*>(span.bottom)).second);
            *below(span.top, 1) = 1;
        }
        for (auto it = bottoms.begin(); std::next(it) != bottoms.end(); ++it)
            EXPECT_GE(static_cast<size_t>(*std::next(it) - *it), bytes);
        for (Stack* stack : taken) cache.give_back(*stack);
    }
}

TEST(StackPool, AStackThatIsGivenBackIsTheNext) {
    StackPool pool;
    StackCache cache(pool);
    Stack* const first = &cache.take();
    for (int i = 0; i < 10'000; ++i) {
        cache.give_back(*first);
        ASSERT_EQ(&cache.take(), first);
    }
    cache.give_back(*first);
    EXPECT_LE(pool.usage().made, 16U);
}

TEST(StackPool, WhatOneWorkerGivesBackAnotherTakes) {
    StackPool pool;
    StackCache giver(pool);
    std::thread([&] {
        StackCache taker(pool);
        for (int i = 0; i < 1'000; ++i) giver.give_back(taker.take());
    }).join();
    EXPECT_LT(pool.usage().made, 200U);
}

TEST(StackPool, IdleStacksKeepNoMoreThanTheyMay) {
    constexpr size_t kStacks = 500;
    StackPool pool({.idle_bytes = 64 * 64 * kKiB});
    std::vector<Stack*> taken;
    {
        StackCache cache(pool);
        for (size_t i = 0; i < kStacks; ++i) {
            taken.push_back(&cache.take());
            std::memset(below(taken.back()->span().top, 32 * kKiB), 7, 32 * kKiB);
        }
        for (Stack* stack : taken) cache.give_back(*stack);
    }
    const StackPool::Usage usage = pool.usage();
    EXPECT_GE(usage.made, kStacks);
    EXPECT_LE(usage.warm, 64U);
    EXPECT_GE(usage.warm + usage.cold, kStacks);
    size_t empty = 0;
    for (const Stack* stack : taken) empty += *below(stack->span().top, kKiB) == 0 ? 1 : 0;
    EXPECT_GE(empty, kStacks - 64);
    StackCache cache(pool);
    std::vector<Stack*> again;
    for (size_t i = 0; i < kStacks; ++i) again.push_back(&cache.take());
    EXPECT_EQ(pool.usage().made, usage.made);
    for (Stack* stack : again) cache.give_back(*stack);
}

// ThreadSanitizer ends at 8,128 fibers, and maps memory for each.
TEST(StackPool, AHundredThousandFibersPauseAtOnceOnFewMappings) {
    constexpr size_t kFibers = heddle::test::kSanitized ? 2'000 : 100'000;
    const size_t before = mappings();
    StackPool pool;
    StackCache cache(pool);
    std::vector<std::unique_ptr<Paused>> all;
    size_t began = 0, ended = 0;
    for (size_t i = 0; i < kFibers; ++i) {
        all.push_back(std::make_unique<Paused>(cache, [&](Paused& self) {
            ++began;
            self.pause();
            ++ended;
        }));
        all.back()->resume();
    }
    EXPECT_EQ(began, kFibers);
    EXPECT_EQ(ended, 0U);
    if constexpr (!heddle::test::kSanitized) {
        EXPECT_LT(mappings(), before + 1'000);
    }
    for (const auto& paused : all) paused->resume();
    EXPECT_EQ(ended, kFibers);
    all.clear();
    EXPECT_LE(pool.usage().warm, 1024U);
}
