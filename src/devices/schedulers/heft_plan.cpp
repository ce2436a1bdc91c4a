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

/// The first time from `ready` on at which a device has a gap of so long; by start time.
double first_gap(const std::vector<Busy>& busy, double free_from, double ready, double length) {
    double start = std::max(free_from, ready);
    for (const Busy& one : busy) {
        if (one.end_us <= start) continue;
        if (start + length <= one.start_us) break;
        start = std::max(start, one.end_us);
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
            double ready = 0;
            for (const PlannedEdge& edge : task.after) {
                const Placement& before = plan[edge.predecessor];
                ready = std::max(ready, before.end_us + edge.exchange_us[before.device * devices + device]);
            }
            const double length = task.transfer_us[device] + task.cost_us[device];
            const double start = first_gap(busy[device], free_us[device], ready, length);
            if (start + length < best.end_us) best = {device, start, start + length};
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
