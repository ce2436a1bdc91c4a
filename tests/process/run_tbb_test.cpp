// oneTBB takes the CPUs that are free, and follows its grant at its next loop.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "support/managed.hpp"
#include "support/on_cpus.hpp"

namespace heddle::test {
namespace {

using bench::Outcome;

class RunTbb : public testing::Test {
  protected:
    void SetUp() override {
        if (!std::filesystem::exists(kPrograms + "loops")) GTEST_SKIP() << "oneTBB is missing";
        if (!two_.enough()) GTEST_SKIP() << "needs two CPUs";
    }
    test::OnCpus two_{2};
    Managed managed_;
};

TEST_F(RunTbb, TakesFreeCpusAndShrinksAtTheNextLoop) {
    // Its own limit is above the machine, so that its threads tell the limits apart.
    const Outcome outcome = managed_.shell(
        "$RUN ${PROGRAMS}loops 5 6 each & p=$!\n"
        "sleep 1; $RUN ${PROGRAMS}regions 2 > /dev/null; wait $p");
    std::vector<int> most;
    std::istringstream lines(outcome.output);
    std::string word;
    for (int number; lines >> word >> number;) most.push_back(number);
    ASSERT_GT(most.size(), 25U) << outcome.output << outcome.errors;
    // The machine is free, then shared (one CPU and one thread more), then free again.
    const auto many = [](int threads) { return threads >= 4; };
    const auto few = [](int threads) { return threads <= 2; };
    EXPECT_GE(std::count_if(most.begin(), most.begin() + 7, many), 4) << outcome.output;
    EXPECT_GE(std::count_if(most.begin() + 8, most.end() - 8, few), 5) << outcome.output;
    EXPECT_GE(std::count_if(most.end() - 7, most.end(), many), 4) << outcome.output;
}

/// Those too that oneTBB makes when our helper thread raises its limit: they have the program's signals.
TEST_F(RunTbb, ThreadsThatItMakesAsItGrowsAreAsTheOthers) {
    const Outcome outcome = managed_.shell(
        "$RUN ${PROGRAMS}regions 1 > /dev/null & r=$!\n"
        "sleep 0.3; $RUN ${PROGRAMS}loops 3 6 each > /dev/null & p=$!\n"
        "wait $r; sleep 1\n"
        "cat /proc/$p/task/*/status | grep SigBlk | grep -c 0000000000000000\n"
        "cat /proc/$p/task/*/status | grep SigBlk | grep -vc 0000000000000000; wait");
    std::istringstream counts(outcome.output);
    int programs = 0, others = 0;
    ASSERT_TRUE(counts >> programs >> others) << outcome.output << outcome.errors;
    EXPECT_GE(programs, 4);
    EXPECT_EQ(others, 1) << "the helper alone has its own";
}

}  // namespace
}  // namespace heddle::test
