// What goes wrong with stacks: overflows, with guard pages and without, and a kernel that gives no memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "fibers/stack_pool.hpp"
#include "heddle/error.hpp"
#include "support/paused.hpp"
#include "support/sanitized.hpp"

using heddle::Error;
using heddle::ErrorCode;
using heddle::Stack;
using heddle::StackCache;
using heddle::StackPool;
using heddle::VirtualMemory;
using heddle::test::Paused;
using testing::HasSubstr;

namespace {

/// The kernel's memory, refused from a given call on or above a size.
class FaultyMemory final : public VirtualMemory {
  public:
    int reserve(size_t bytes, void** address) override {
        if (bytes > largest) return -ENOMEM;
        reserved += bytes;
        return VirtualMemory::reserve(bytes, address);
    }
    void release(void* address, size_t bytes) override {
        reserved -= bytes;
        VirtualMemory::release(address, bytes);
    }
    int guard(void* address, size_t bytes) override {
        return guard_failure != 0 ? guard_failure : VirtualMemory::guard(address, bytes);
    }

    size_t largest = ~size_t{0};
    int guard_failure = 0;
    size_t reserved = 0;
};

/// Whether this kernel has MADV_GUARD_INSTALL.
bool guards_here() {
    VirtualMemory& memory = VirtualMemory::of_system();
    void* page = nullptr;
    const size_t bytes = VirtualMemory::page_bytes();
    if (memory.reserve(bytes, &page) != 0) return false;
    const bool has = memory.guard(page, bytes) == 0;
    memory.release(page, bytes);
    return has;
}

[[gnu::noinline]] int recurse(int depth) {
    volatile char frame[512];
    for (volatile char& byte : frame) byte = static_cast<char>(depth);
    return depth == 0 ? frame[0] : recurse(depth - 1) + frame[0];
}

/// Runs `depth` frames of half a KiB and more on a stack of 64 KiB.
void run_deep(StackPool& pool, int depth) {
    StackCache cache(pool);
    Paused paused(cache, [&](Paused&) { (void)recurse(depth); });
    paused.resume();
}

Error error_of(StackCache& cache) {
    try {
        (void)cache.take();
    } catch (const Error& error) {
        return error;
    }
    throw std::logic_error("nothing was thrown");
}

struct StackFault : testing::Test {
    void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

using StackFaultDeathTest = StackFault;

}  // namespace

TEST_F(StackFaultDeathTest, AnOverflowMeetsTheGuardPage) {
    if (!guards_here()) GTEST_SKIP() << "this kernel has no MADV_GUARD_INSTALL (Linux 6.13)";
    StackPool pool;
    run_deep(pool, 10);
    if constexpr (heddle::test::kSanitized)
        EXPECT_DEATH(run_deep(pool, 200), "");
    else
        EXPECT_EXIT(run_deep(pool, 200), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(StackFaultDeathTest, WithoutGuardsAnOverflowIsFoundWhenTheStackIsGivenBack) {
    StackPool pool({.guard_pages = false});
    run_deep(pool, 10);
    EXPECT_EXIT(run_deep(pool, 140), testing::KilledBySignal(SIGABRT),
                "a fiber overflowed its stack, 0x[0-9a-f]+ to 0x[0-9a-f]+ .64 KiB.");
}

TEST_F(StackFaultDeathTest, AnExceptionThatLeavesTheEntryTerminates) {
    StackPool pool;
    StackCache cache(pool);
    EXPECT_DEATH(
        {
            Paused paused(cache, [](Paused&) { throw std::runtime_error("nobody catches this"); });
            paused.resume();
        },
        "nobody catches this");
}

TEST_F(StackFault, AKernelWithoutGuardsGetsCanaries) {
    FaultyMemory memory;
    memory.guard_failure = -EINVAL;
    StackPool pool({}, memory);
    run_deep(pool, 10);
    StackCache cache(pool);
    Stack& stack = cache.take();
    const auto* bottom = static_cast<const char*>(stack.span().bottom);
    EXPECT_TRUE(std::any_of(bottom, bottom + 64, [](char byte) { return byte != 0; }));
    cache.give_back(stack);
}

TEST_F(StackFault, ALargePieceThatIsRefusedIsAskedForInSmallerOnes) {
    FaultyMemory memory;
    memory.largest = size_t{256} << 10;
    StackPool pool({}, memory);
    StackCache cache(pool);
    std::vector<Stack*> taken;
    for (int i = 0; i < 40; ++i) taken.push_back(&cache.take());
    for (Stack* stack : taken) cache.give_back(*stack);
}

TEST_F(StackFault, NoAddressSpaceIsAnErrorAndNoMore) {
    FaultyMemory memory;
    {
        StackPool pool({}, memory);
        StackCache cache(pool);
        std::vector<Stack*> taken;
        for (int i = 0; i < 20; ++i) taken.push_back(&cache.take());
        memory.largest = 0;
        while (pool.usage().made < 48 || taken.size() < 48) taken.push_back(&cache.take());
        for (int i = 0; i < 2; ++i) {
            const Error error = error_of(cache);
            EXPECT_EQ(error.code(), ErrorCode::kLimit);
            EXPECT_THAT(error.what(), HasSubstr("64 KiB beside 48 others: mmap: Cannot allocate memory"));
            EXPECT_THAT(error.what(), HasSubstr("ulimit -v"));
        }
        cache.give_back(*taken.back());
        EXPECT_EQ(&cache.take(), taken.back());  // those that there are go on
        memory.largest = ~size_t{0};
        taken.push_back(&cache.take());
        for (Stack* stack : taken) cache.give_back(*stack);
    }
    EXPECT_EQ(memory.reserved, 0U);
}

TEST_F(StackFault, NoMemoryForAGuardIsAnErrorAndTheStackIsTriedAgain) {
    FaultyMemory memory;
    memory.guard_failure = -ENOMEM;
    StackPool pool({}, memory);
    StackCache cache(pool);
    EXPECT_THAT(error_of(cache).what(), HasSubstr("a guard page: Cannot allocate memory"));
    EXPECT_EQ(error_of(cache).code(), ErrorCode::kLimit);
    memory.guard_failure = 0;
    Stack& stack = cache.take();
    EXPECT_EQ(pool.usage().made, 16U);
    cache.give_back(stack);
}
