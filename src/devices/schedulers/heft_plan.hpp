// HEFT: Heterogeneous Earliest Finish Time (Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity
// task scheduling for heterogeneous computing", IEEE TPDS 13(3), 2002), as a pure function.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace heddle::devices {

inline constexpr double kCannotRun = std::numeric_limits<double>::infinity();

struct PlannedEdge {
    size_t predecessor = 0;  ///< an index below the task's own
    /// From device a to device b at [a * devices + b], in microseconds; 0 where a is b.
    std::vector<double> exchange_us;
};

struct PlanTask {
    std::vector<double> cost_us;      ///< by device; kCannotRun
    std::vector<double> transfer_us;  ///< by device: of what it reads and no task of the plan writes
    std::vector<PlannedEdge> after;
    std::vector<double> arrives_us{};  ///< by device, or none: when what running tasks write for it is there
    int priority = 0;                  ///< among those of the same rank the highest comes first
    [[nodiscard]] double ready_us(size_t device) const { return arrives_us.empty() ? 0 : arrives_us[device]; }
};

struct Placement {
    size_t device = 0;
    double start_us = 0;  ///< of computing: what it reads is there
    double end_us = 0;
};

/// What a task weighs in ranks.
enum class RankWeight {
    kMean,  ///< its mean cost over devices, as in the paper
    kBest,  ///< its cost on its best device
};

/// A task's weight and the longest way from there to an end: the paper's upward rank.
[[nodiscard]] std::vector<double> upward_ranks(const std::vector<PlanTask>& tasks, RankWeight weight);

/// Tasks in the order of their ranks, each where it ends first, in gaps too. A device is free from
/// `free_us[device]` on, and copies what the next task reads while one runs. Each task can run somewhere.
[[nodiscard]] std::vector<Placement> heft_plan(const std::vector<PlanTask>& tasks,
                                               const std::vector<double>& free_us, RankWeight weight);

[[nodiscard]] double makespan(const std::vector<Placement>& plan);

}  // namespace heddle::devices
