// Machine::nearest: which CPUs to take, so that a program's CPUs stay close together.
//
// Two steps. The distance to the anchor sorts the candidates into five classes; a class that is needed only
// in part is cut by the compact choice, which goes down the machine (package, NUMA node, core) and prefers at
// each step the unit where the rest fits into one NUMA node and the fewest cores. Words of bits and tables
// made in advance keep it to a few microseconds at 1,024 CPUs: the arbiter calls it for every client in a
// rebalance.
#include <algorithm>
#include <array>
#include <compare>
#include <limits>

#include "base/steps.hpp"
#include "heddle/machine.hpp"
#include "topology/machine_data.hpp"

namespace heddle {
namespace {

using Data = Machine::Data;

/// The available CPUs of a stretch of cores: how many cores have how many of them.
struct Supply {
    static constexpr size_t kMaxThreads = 16;  ///< threads a core counted exactly; more count as this many
    std::array<int, kMaxThreads + 1> cores_with{};
    int cpus = 0;

    void add_core(int available) {
        cpus += available;
        ++cores_with[std::min(static_cast<size_t>(available), kMaxThreads)];
    }
    void add(const Supply& other) {
        cpus += other.cpus;
        for (size_t i = 0; i <= kMaxThreads; ++i) cores_with[i] += other.cores_with[i];
    }
    /// Cores touched by `count` CPUs when the fullest cores are taken first.
    [[nodiscard]] int cores_for(int count) const {
        int cores = 0;
        for (size_t threads = kMaxThreads; threads > 0 && count > 0; --threads) {
            const int size = static_cast<int>(threads);
            const int used = std::min(cores_with[threads], (count + size - 1) / size);
            cores += used;
            count -= used * size;
        }
        return cores;
    }
};

/// The choice from one class of candidates.
class CompactChoice {
  public:
    CompactChoice(const Data& data, const CpuSet& available, CpuSet& chosen)
        : data_(data),
          available_(available),
          chosen_(chosen),
          per_core_(data.cores.size()),
          nodes_(data.nodes.size()),
          packages_(data.packages.size()) {
        for (const int cpu : available) {
            const size_t core = data.core_of[static_cast<size_t>(cpu)];
            if (per_core_[core]++ == 0) cores_.push_back(core);
        }
        std::ranges::sort(cores_);
        HEDDLE_STEPS(cores_.size());
        for (const size_t core : cores_) nodes_[data.node_of[core]].add_core(per_core_[core]);
        HEDDLE_STEPS(nodes_.size());
        for (size_t node = 0; node < nodes_.size(); ++node)
            packages_[data.package_of[node]].add(nodes_[node]);
    }

    void take(int count) {
        while (count > 0) {
            const size_t package = best(packages_, {0, packages_.size()}, count,
                                        [&](size_t unit) { return cost_of_package(unit, count); });
            const int here = std::min(count, packages_[package].cpus);
            if (here == 0) return;
            take_in_package(package, here);
            count -= here;
        }
    }

  private:
    static constexpr int kMany = std::numeric_limits<int>::max() - 1;

    /// What taking `count` CPUs from a unit costs, the first difference deciding; the unit has that many.
    struct Cost {
        int nodes;
        int cores;
        int room;
        friend auto operator<=>(const Cost&, const Cost&) = default;
    };

    [[nodiscard]] Cost cost_of_node(size_t node, int count) const {
        return {1, nodes_[node].cores_for(count), nodes_[node].cpus};
    }

    [[nodiscard]] Cost cost_of_package(size_t package, int count) const {
        Cost cost{kMany, packages_[package].cores_for(count), packages_[package].cpus};
        for (size_t node = data_.packages[package].first; node < data_.packages[package].last; ++node)
            if (nodes_[node].cpus >= count)
                cost = std::min(cost, {1, nodes_[node].cores_for(count), packages_[package].cpus});
        return cost;
    }

    /// The cheapest unit of those where `count` CPUs fit, or the roomiest where none does. Ties go to the
    /// first.
    template <typename CostOf>
    static size_t best(const std::vector<Supply>& units, Data::Run run, int count, CostOf cost_of) {
        size_t found = run.first;
        Cost found_cost{kMany + 1, 0, 0};
        HEDDLE_STEPS(run.last - run.first);
        for (size_t unit = run.first; unit < run.last; ++unit) {
            if (units[unit].cpus >= count) {
                const Cost cost = cost_of(unit);
                if (cost < found_cost) {
                    found = unit;
                    found_cost = cost;
                }
            } else if (found_cost.nodes > kMany && units[unit].cpus > units[found].cpus) {
                found = unit;
            }
        }
        return found;
    }

    void take_in_package(size_t package, int count) {
        packages_[package].cpus -= count;
        while (count > 0) {
            const size_t node = best(nodes_, data_.packages[package], count,
                                     [&](size_t unit) { return cost_of_node(unit, count); });
            const int here = std::min(count, nodes_[node].cpus);
            nodes_[node].cpus -= here;
            take_in_node(data_.nodes[node], here);
            count -= here;
        }
    }

    /// Fullest cores first: the threads of a core that another program half holds are slower.
    void take_in_node(Data::Run cores, int count) {
        const auto first = std::ranges::lower_bound(cores_, cores.first);
        const auto last = std::ranges::lower_bound(cores_, cores.last);
        int fullest = 0;
        HEDDLE_STEPS(last - first);
        for (auto core = first; core != last; ++core) fullest = std::max(fullest, per_core_[*core]);
        for (int size = fullest; size > 0; --size) {
            for (auto core = first; core != last; ++core) {
                HEDDLE_STEPS(1);
                if (per_core_[*core] != size) continue;
                for (size_t i = data_.cores[*core].first; i < data_.cores[*core].last; ++i) {
                    const int cpu = data_.order[i];
                    if (!available_.contains(cpu)) continue;
                    chosen_.insert(cpu);
                    if (--count == 0) return;
                }
            }
        }
    }

    const Data& data_;
    const CpuSet& available_;
    CpuSet& chosen_;
    std::vector<size_t> cores_;  // those with available CPUs, in order
    std::vector<int> per_core_;
    std::vector<Supply> nodes_;
    std::vector<Supply> packages_;
};

/// All CPUs that share a unit (core, NUMA node, package) with a CPU of the anchor.
CpuSet around(const Data& data, const CpuSet& anchor, const std::vector<CpuSet>& units,
              int CpuPlace::*member) {
    CpuSet near;
    for (const int cpu : anchor) {
        if (near.contains(cpu)) continue;
        const CpuPlace& place = data.places[static_cast<size_t>(data.index_of[static_cast<size_t>(cpu)])];
        near |= units[static_cast<size_t>(place.*member)];
    }
    return near;
}

}  // namespace

CpuSet Machine::nearest(const CpuSet& anchor, const CpuSet& from, int count) const {
    const Data& data = *data_;
    CpuSet chosen;
    CpuSet left = from & data.cpus;
    /// Takes what is needed of the CPUs of `near`; true when that was enough.
    const auto take = [&](const CpuSet& near) {
        const CpuSet candidates = left & near;
        const int available = candidates.count();
        if (available > count) {
            CompactChoice(data, candidates, chosen).take(count);
            count = 0;
        } else {
            chosen |= candidates;
            count -= available;
            left -= candidates;
        }
        return count <= 0;
    };
    if (count <= 0) return chosen;
    const CpuSet known = anchor & data.cpus;
    if (!known.empty()) {
        if (take(known)) return chosen;
        if (take(around(data, known, data.core_cpus, &CpuPlace::core))) return chosen;
        if (take(around(data, known, data.numa_cpus, &CpuPlace::numa))) return chosen;
        if (take(around(data, known, data.package_cpus, &CpuPlace::package))) return chosen;
    }
    (void)take(data.cpus);
    return chosen;
}

}  // namespace heddle
