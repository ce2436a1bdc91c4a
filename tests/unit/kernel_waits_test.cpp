// Kernels that are tasks wait for each other, and for tasks: in a circle one of them is refused.
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
    void SetUp() override {
        OnEachEngine::SetUp();
        if (engine_.name.starts_with("openmp") || engine_.name == "tbb")
            GTEST_SKIP() << "skipped: kernels of foreign runtimes are no tasks, and not looked at";
    }
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
