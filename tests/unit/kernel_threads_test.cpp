// Where the threads of kernels run that bring their runtime's, and those of the program behind them.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>

#include "heddle/machine.hpp"
#include "heddle/offload.hpp"
#include "heddle/task.hpp"
#include "support/engines.hpp"
#include "support/kernels.hpp"
#include "support/wait_until.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

class KernelThreads : public test::OnEachEngine {
  protected:
    void SetUp() override {
        if (cpus_.count() < 2) GTEST_SKIP() << "skipped: one CPU";
        if (engine_.name != "tbb" && !engine_.name.starts_with("openmp"))
            GTEST_SKIP()
                << "skipped: its kernels are tasks, and run on workers, which are bound to a CPU each";
        test::OnEachEngine::SetUp();
    }
    /// Where each of two threads may run that are in a region at once, the calling one first.
    [[nodiscard]] std::pair<CpuSet, CpuSet> two_threads() const {
        const auto first = std::this_thread::get_id();
        CpuSet may, other_may;
        std::atomic<int> inside{0};
        test::in_parallel(engine_.name, 2, [&](int) {
            (std::this_thread::get_id() == first ? may : other_may) = thread_affinity();
            ++inside;
            (void)test::becomes_true([&] { return inside == 2; });
        });
        return {may, other_may};
    }
    void expect_two_threads_outside() const {
        const auto [may, other_may] = two_threads();
        EXPECT_EQ(may.to_list(), outside_.to_list());
        EXPECT_EQ(other_may.to_list(), outside_.to_list());
    }

    const CpuSet cpus_ = allowance(Machine::detect()).usable;
    const CpuSet two_{cpus_.first(), cpus_.last()};
    const CpuSet outside_ = thread_affinity();
};
INSTANTIATE_TEST_SUITE_P(Engines, KernelThreads, test::engines(), test::engine_name);

/// A system may put a thread that is woken behind the one that wakes it, and leave another CPU idle.
TEST_P(KernelThreads, EachThatARuntimeAddsHasACpuForItself) {
    {
        Offload offload(engine_.name, two_);
        for (int round = 0; round < 20; ++round) {
            std::pair<CpuSet, CpuSet> may;
            offload.spawn([&] { may = two_threads(); }).wait();
            EXPECT_EQ(may.first.to_list(), two_.to_list()) << "what it makes inherits it";
            EXPECT_EQ(may.second.count(), 1) << may.second.to_list();
        }
    }
    // Threads of oneTBB are the process's, and come to its other arenas.
    expect_two_threads_outside();
}

/// libomp takes the CPUs of the thread that first asks it for something for those of the process.
TEST_P(KernelThreads, TheProgramsOwnAreNotConfinedToTheCpusOfTheFirstKernel) {
    Offload offload(engine_.name, CpuSet{cpus_.first()});
    offload.spawn([&] { test::in_parallel(engine_.name, 2, [](int) {}); }).wait();
    expect_two_threads_outside();
}

/// The same where the engine is first asked for on a worker, which is bound to one CPU.
TEST_P(KernelThreads, TheProgramsOwnAreNotConfinedToTheCpuOfTheTaskThatAskedFirst) {
    RuntimeOptions options;
    options.workers = 2;
    Runtime runtime(options);
    Sequence sequence(runtime);
    CpuSet asked_on;
    // Not by the thread that waits, which is bound to nothing.
    std::atomic<bool> asked{false};
    sequence.insert([&] {
        asked_on = thread_affinity();
        Offload(engine_.name, two_).spawn([] {}).wait();
        asked = true;
    });
    ASSERT_TRUE(test::becomes_true([&] { return asked.load(); }));
    sequence.wait();
    EXPECT_EQ(asked_on.count(), 1) << asked_on.to_list();
    expect_two_threads_outside();
}

}  // namespace
}  // namespace heddle
