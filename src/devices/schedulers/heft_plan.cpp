#include "devices/schedulers/heft_plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heddle::devices {
namespace {

double weight_of(const PlanTask& task, RankWeight weight) {
    double sum = 0, best = kCannotRun;
    size_t count = 0;
    for (const double cost : task.cost_us) {
        if (!std::isfinite(cost)) continue;
        sum += cost;
        best = std::min(best, cost);
        ++count;
    }
    if (count == 0) return 0;
    return weight == RankWeight::kBest ? best : sum / static_cast<double>(count);
}

/// Over pairs of different devices.
double mean_exchange(const PlannedEdge& edge, size_t devices) {
    if (devices < 2) return 0;
    const double sum = std::accumulate(edge.exchange_us.begin(), edge.exchange_us.end(), 0.0);
    return sum / static_cast<double>(devices * (devices - 1));
}

struct Busy {
    double start_us, end_us;
};

/// What a task needs of a device: `transfer_us` of copies, which can begin at `ready_us`, while the task
/// before it runs there and not sooner, and `cost_us` of computing.
struct Need {
    double ready_us, transfer_us, cost_us;
};

/// The first time at which a device, which is free from `free_us` on, can compute it, in gaps too; `busy` is
/// by start time.
double first_start(const std::vector<Busy>& busy, double free_us, const Need& need) {
    double start = std::max(free_us, need.ready_us + need.transfer_us);
    for (const Busy& one : busy) {
        if (start + need.cost_us <= one.start_us) break;
        const double sent = std::max(need.ready_us, one.start_us) + need.transfer_us;
        start = std::max({start, one.end_us, sent});
    }
    return start;
}

}  // namespace

std::vector<double> upward_ranks(const std::vector<PlanTask>& tasks, RankWeight weight) {
    std::vector<double> below(tasks.size(), 0), ranks(tasks.size(), 0);
    for (size_t i = tasks.size(); i-- > 0;) {
        ranks[i] = weight_of(tasks[i], weight) + below[i];
        for (const PlannedEdge& edge : tasks[i].after)
            below[edge.predecessor] =
                std::max(below[edge.predecessor], mean_exchange(edge, tasks[i].cost_us.size()) + ranks[i]);
    }
    return ranks;
}

std::vector<Placement> heft_plan(const std::vector<PlanTask>& tasks, const std::vector<double>& free_us,
                                 RankWeight weight) {
    const size_t devices = free_us.size();
    const std::vector<double> ranks = upward_ranks(tasks, weight);
    std::vector<size_t> order(tasks.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return ranks[a] > ranks[b]; });
    std::vector<std::vector<Busy>> busy(devices);
    std::vector<Placement> plan(tasks.size());
    for (const size_t i : order) {
        const PlanTask& task = tasks[i];
        Placement best{0, 0, kCannotRun};
        for (size_t device = 0; device < devices; ++device) {
            if (!std::isfinite(task.cost_us[device])) continue;
            double ready = task.ready_us(device);
            for (const PlannedEdge& edge : task.after) {
                const Placement& before = plan[edge.predecessor];
                ready = std::max(ready, before.end_us + edge.exchange_us[before.device * devices + device]);
            }
            const Need need{ready, task.transfer_us[device], task.cost_us[device]};
            const double start = first_start(busy[device], free_us[device], need);
            if (start + need.cost_us < best.end_us) best = {device, start, start + need.cost_us};
        }
        plan[i] = best;
        std::vector<Busy>& there = busy[best.device];
        const auto at = std::upper_bound(there.begin(), there.end(), best.start_us,
                                         [](double start, const Busy& one) { return start < one.start_us; });
        there.insert(at, {best.start_us, best.end_us});
    }
    return plan;
}

double makespan(const std::vector<Placement>& plan) {
    double end = 0;
    for (const Placement& placement : plan) end = std::max(end, placement.end_us);
    return end;
}

}  // namespace heddle::devices
