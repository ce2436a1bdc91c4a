#include "bench/machine_load.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary_folder.hpp"

using heddle::Nanoseconds;
using heddle::bench::MachineLoad;

namespace {

/// A /proc/stat of two CPUs, written in ticks of 10 ms.
class Stat {
  public:
    [[nodiscard]] std::string path() const { return folder_.path() + "/stat"; }
    void pass(long user, long idle) {
        user_ += user;
        idle_ += idle;
        std::ofstream(path()) << "cpu  " << user_ << " 0 0 " << idle_ << " 0 0 0 0 0 0\n";
    }

  private:
    heddle::TemporaryFolder folder_{heddle::TemporaryFolder::place() + "/heddle-stat-"};
    long user_ = 0, idle_ = 0;
};

}  // namespace

/// The kernel counts one tick for each ten runs of 1 ms: no run by itself tells anything.
TEST(BenchMachineLoad, RunsThatAreShorterThanATickAreNobodyElses) {
    Stat stat;
    stat.pass(0, 0);
    MachineLoad load(Nanoseconds::zero(), stat.path());
    for (int run = 0; run < 100; ++run) {
        load.run_begins();
        stat.pass(run % 10 == 0 ? 1 : 0, run % 10 == 0 ? 1 : 0);
        load.run_ended(0.001);
    }
    EXPECT_NEAR(load.take_others_share(), 0, 0.001);
}

TEST(BenchMachineLoad, WhatOthersUseIsToldOnce) {
    Stat stat;
    stat.pass(0, 0);
    MachineLoad load(Nanoseconds::zero(), stat.path());
    load.run_begins();
    stat.pass(150, 50);  // 1.5 of 2 CPU-seconds, 1 of them its own
    load.run_ended(1);
    EXPECT_NEAR(load.take_others_share(), 0.25, 0.001);
    EXPECT_EQ(load.take_others_share(), 0);
}
