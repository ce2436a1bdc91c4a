// Which kernel begins when more are spawned than there are CPUs, where kernels are tasks.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "heddle/offload.hpp"
#include "heddle/task.hpp"
#include "support/engines.hpp"
#include "support/kernels.hpp"

namespace heddle {
namespace {

using std::chrono::microseconds;

class KernelOrder : public test::OnEachEngine {
  protected:
    void SetUp() override {
        if (engine_.name.starts_with("openmp") || engine_.name == "tbb")
            GTEST_SKIP() << "skipped: its kernels have threads of their own, and one CPU or more each";
        test::OnEachEngine::SetUp();
    }
};
INSTANTIATE_TEST_SUITE_P(Engines, KernelOrder, test::engines(), test::engine_name);

/// Else each would find the caches full of the others' data.
TEST_P(KernelOrder, WhatHasBegunGoesOnBeforeAnotherBegins) {
    constexpr int kKernels = 24;
    const CpuSet all = thread_affinity();
    for (const CpuSet& cpus : {CpuSet{all.first()}, CpuSet{all.first(), all.last()}}) {
        Offload offload(engine_.name, cpus);
        std::atomic<int> at_once{0}, most_at_once{0};
        for (int i = 0; i < kKernels; ++i)
            (void)offload.spawn([&] {
                const int now = ++at_once;
                for (int most = most_at_once; now > most && !most_at_once.compare_exchange_weak(most, now);) {
                }
                for (int round = 0; round < 50; ++round)
                    test::in_parallel(engine_.name, 8, [](int) { test::spend(microseconds(10)); });
                --at_once;
            });
        offload.wait();
        EXPECT_LE(most_at_once, kKernels / 3) << "on " << cpus.count() << " CPUs";
    }
}

/// They wait for each other without telling heddle: all of them have to begin while none ever lets up.
TEST_P(KernelOrder, ThoseThatAlwaysHaveSomethingToRunKeepNoOtherFromBeginning) {
    constexpr int kKernels = 5;
    for (const int priority : {0, 1, -1}) {
        Offload offload(engine_.name, CpuSet{thread_affinity().first()});
        std::atomic<int> begun{0};
        std::atomic<bool> late{false};
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        for (int i = 0; i < kKernels; ++i)
            (void)offload.spawn([&] {
                ++begun;
                Sequence sequence(kernel_runtime());
                while (begun < kKernels && !late) {
                    for (int task = 0; task < 8; ++task)
                        sequence.insert(TaskOptions{.priority = priority},
                                        [] { test::spend(microseconds(10)); });
                    sequence.wait();
                    late = std::chrono::steady_clock::now() > end;
                }
            });
        offload.wait();
        EXPECT_FALSE(late) << begun << " had begun, priority " << priority;
    }
}

}  // namespace
}  // namespace heddle
