#include "devices/schedulers/heft_plan.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
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

/// Tasks without a gap between them: no other one fits there.
struct Busy {
    double start_us, end_us;
    double last_start_us;  ///< of the last of them
};

/// What a task needs of a device: `transfer_us` of copies, which can begin at `ready_us`, while the task
/// before it runs there and not sooner, and `cost_us` of computing.
struct Need {
    double ready_us, transfer_us, cost_us;
};

/// What a device does, by start time.
class DevicePlan {
  public:
    explicit DevicePlan(double free_us) : free_us_(free_us) {}

    /// The first time at which it can compute it, in gaps too.
    [[nodiscard]] double first_start(const Need& need) const {
        double start = std::max(free_us_, need.ready_us + need.transfer_us);
        // What ends before the need is there delays nothing.
        auto one = std::upper_bound(busy_.begin(), busy_.end(), need.ready_us,
                                    [](double ready, const Busy& busy) { return ready < busy.end_us; });
        for (; one != busy_.end() && start + need.cost_us > one->start_us; ++one) {
            const double sent = std::max(need.ready_us, one->last_start_us) + need.transfer_us;
            start = std::max({start, one->end_us, sent});
        }
        return start;
    }

    void add(double start_us, double end_us) {
        auto after = std::upper_bound(busy_.begin(), busy_.end(), start_us,
                                      [](double start, const Busy& one) { return start < one.start_us; });
        const bool closes_gap = after != busy_.end() && after->start_us == end_us;
        if (after != busy_.begin() && std::prev(after)->end_us == start_us) {
            Busy& before = *std::prev(after);
            before.end_us = closes_gap ? after->end_us : end_us;
            before.last_start_us = closes_gap ? after->last_start_us : start_us;
            if (closes_gap) busy_.erase(after);
        } else if (closes_gap) {
            after->start_us = start_us;
        } else {
            busy_.insert(after, {start_us, end_us, start_us});
        }
    }

  private:
    double free_us_;
    std::vector<Busy> busy_;
};

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
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return ranks[a] != ranks[b] ? ranks[a] > ranks[b] : tasks[a].priority > tasks[b].priority;
    });
    std::vector<DevicePlan> own(free_us.begin(), free_us.end());
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
            const double start = own[device].first_start(need);
            if (start + need.cost_us < best.end_us) best = {device, start, start + need.cost_us};
        }
        plan[i] = best;
        own[best.device].add(best.start_us, best.end_us);
    }
    return plan;
}

double makespan(const std::vector<Placement>& plan) {
    double end = 0;
    for (const Placement& placement : plan) end = std::max(end, placement.end_us);
    return end;
}

}  // namespace heddle::devices
