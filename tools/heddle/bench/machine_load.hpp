// MachineLoad: how much of the machine other programs used while the benchmarks ran.
//
// Reads /proc/stat, stolen time included. A figure taken on a busy machine is worth less, so the report says
// how busy it was, and a caller may wait for quiet before each run. One thread.
#pragma once

#include <string>
#include <utility>

#include "base/clock.hpp"

namespace heddle::bench {

class MachineLoad {
  public:
    /// `patience`: how long wait_for_quiet() may wait over the life of this object. `stat` is as /proc/stat.
    explicit MachineLoad(Nanoseconds patience, std::string stat = "/proc/stat")
        : patience_(patience), stat_(std::move(stat)) {}

    /// Waits until the machine is nine tenths idle, or the patience is used up.
    void wait_for_quiet();

    /// Around each run; `own_cpu_s` is what the run's own programs used.
    void run_begins();
    void run_ended(double own_cpu_s);

    /// Of the runs since the last call: the part of all CPU time, 0 to 1, that others used.
    [[nodiscard]] double take_others_share();

  private:
    struct Reading {
        double busy_s = 0;
        double all_s = 0;
    };
    [[nodiscard]] Reading read() const;

    Nanoseconds patience_;
    std::string stat_;
    Reading begin_;
    double others_s_ = 0;  // of one run it may be negative: a tick is longer than a short run
    double all_s_ = 0;
};

}  // namespace heddle::bench
