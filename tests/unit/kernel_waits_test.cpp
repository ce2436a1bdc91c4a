// Kernels wait for each other, and for tasks: in a circle one of them is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <optional>

#include "heddle/error.hpp"
#include "heddle/offload.hpp"
#include "heddle/pause.hpp"
#include "heddle/task.hpp"
#include "support/engines.hpp"

namespace heddle {
namespace {

using testing::HasSubstr;

class KernelWaits : public test::OnEachEngine {
  protected:
    /// Counts in `refused` a wait that is.
    template <class Wait>
    void wait_or_count(const Wait& wait) {
        try {
            wait();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
            EXPECT_THAT(error.what(), HasSubstr("neither would ever be done"));
            ++refused_;
        }
    }

    std::atomic<int> refused_{0};
};

TEST_P(KernelWaits, OfTwoThatWaitForEachOtherOneIsRefused) {
    Offload offload(engine_.name);
    std::array<std::optional<Kernel>, 2> kernels;
    std::array<BlockCondition, 2> spawned;
    for (size_t i = 0; i < 2; ++i)
        kernels[i] = offload.spawn([&, i] {
            spawned[i].block();
            wait_or_count([&] { kernels[1 - i]->wait(); });
        });
    for (BlockCondition& condition : spawned) condition.signal();
    for (const auto& kernel : kernels) kernel->wait();
    EXPECT_EQ(refused_, 1);
}

TEST_P(KernelWaits, OfAKernelAndATaskThatWaitForEachOtherOneIsRefused) {
    Runtime runtime(options());
    Offload offload(engine_.name);
    Sequence sequence(runtime);
    std::optional<Kernel> kernel;
    std::array<BlockCondition, 2> spawned;
    sequence.insert([&] {
        spawned[0].block();
        wait_or_count([&] { kernel->wait(); });
    });
    kernel = offload.spawn([&] {
        spawned[1].block();
        wait_or_count([&] { sequence.wait(); });
    });
    for (BlockCondition& condition : spawned) condition.signal();
    sequence.wait();
    kernel->wait();
    EXPECT_EQ(refused_, 1);
}

TEST_P(KernelWaits, OfAKernelAndATaskWithAFutureThatWaitForEachOtherOneIsRefused) {
    Runtime runtime(options());
    Offload offload(engine_.name);
    Sequence sequence(runtime);
    std::optional<Kernel> kernel;
    std::array<BlockCondition, 2> spawned;
    const Future<int> future = sequence.async([&] {
        spawned[0].block();
        wait_or_count([&] { kernel->wait(); });
        return 3;
    });
    kernel = offload.spawn([&] {
        spawned[1].block();
        wait_or_count([&] { future.wait(); });
    });
    for (BlockCondition& condition : spawned) condition.signal();
    EXPECT_EQ(future.get(), 3);
    kernel->wait();
    EXPECT_EQ(refused_, 1);
}

/// A kernel of this engine waits for one of native, that for a task, and the task for the first.
TEST_P(KernelWaits, ACircleAcrossEnginesIsFound) {
    Runtime runtime(options());
    Offload offload(engine_.name), other("native");
    Sequence sequence(runtime);
    std::optional<Kernel> first, second;
    std::array<BlockCondition, 3> spawned;
    first = offload.spawn([&] {
        spawned[0].block();
        wait_or_count([&] { second->wait(); });
    });
    second = other.spawn([&] {
        spawned[1].block();
        wait_or_count([&] { sequence.wait(); });
    });
    sequence.insert([&] {
        spawned[2].block();
        wait_or_count([&] { first->wait(); });
    });
    for (BlockCondition& condition : spawned) condition.signal();
    first->wait();
    second->wait();
    sequence.wait();
    EXPECT_EQ(refused_, 1);
}

TEST_P(KernelWaits, WhereADestructorInAKernelClosesTheCircleAnotherWaitIsRefused) {
    Runtime runtime(options());
    Offload offload(engine_.name);
    std::optional<Kernel> kernel;
    BlockCondition spawned;
    kernel = offload.spawn([&] {
        Sequence sequence(runtime);
        sequence.insert([&] {
            spawned.block();
            wait_or_count([&] { kernel->wait(); });
        });
    });
    spawned.signal();
    kernel->wait();
    EXPECT_EQ(refused_, 1);
}

TEST_P(KernelWaits, OneThatWaitsForManyIsNotRefused) {
    Offload offload(engine_.name);
    std::atomic<int> ended{0};
    offload
        .spawn([&] {
            std::array<std::optional<Kernel>, 20> others;
            for (auto& other : others) other = offload.spawn([&] { ++ended; });
            for (const auto& other : others) wait_or_count([&] { other->wait(); });
        })
        .wait();
    EXPECT_EQ(ended, 20);
    EXPECT_EQ(refused_, 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, KernelWaits, test::engines(), test::engine_name);

}  // namespace
}  // namespace heddle
