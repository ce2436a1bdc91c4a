#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "trace/drawing.hpp"
#include "trace/escape.hpp"
#include "trace/summary.hpp"

namespace heddle::trace {
namespace {

std::string row_label(const Timeline& timeline, size_t first, size_t count) {
    if (!timeline.cpus[first].label.empty()) {
        const std::string label = printable(timeline.cpus[first].label);
        if (count == 1) return label;
        return fmt::format("{} to {}", label, printable(timeline.cpus[first + count - 1].label));
    }
    CpuSet cpus;
    for (size_t i = first; i < first + count; ++i) cpus.insert(timeline.cpus[i].place.cpu);
    return fmt::format("CPU {}", cpus.to_list());
}

}  // namespace

std::vector<RowGroup> rows_of(const Timeline& timeline, size_t max_rows) {
    std::set<int> packages;
    std::set<int> nodes;
    std::set<std::pair<int, int>> pairs;
    for (const CpuHistory& cpu : timeline.cpus) {
        packages.insert(cpu.place.package);
        nodes.insert(cpu.place.numa);
        pairs.emplace(cpu.place.package, cpu.place.numa);
    }
    const bool one_to_one = packages.size() == pairs.size();
    const auto group_label = [&](const CpuPlace& place) -> std::string {
        if (pairs.size() == 1) return "";
        if (one_to_one) return fmt::format("package {}", place.package);
        if (packages.size() == 1) return fmt::format("NUMA {}", place.numa);
        return fmt::format("package {}, NUMA {}", place.package, place.numa);
    };
    const size_t total = timeline.cpus.size();
    const size_t together = (total + max_rows - 1) / std::max<size_t>(max_rows, 1);
    std::vector<RowGroup> groups;
    for (size_t i = 0; i < total;) {
        const CpuPlace& place = timeline.cpus[i].place;
        const auto same_group = [&](size_t other) {
            const CpuPlace& p = timeline.cpus[other].place;
            return p.package == place.package && p.numa == place.numa;
        };
        RowGroup group{group_label(place), {}};
        size_t end = i;
        while (end < total && same_group(end)) ++end;
        for (; i < end; i += std::min(together, end - i)) {
            const size_t count = std::min(together, end - i);
            group.rows.push_back({i, count, row_label(timeline, i, count)});
        }
        groups.push_back(std::move(group));
    }
    return groups;
}

std::string dropped_text(const Timeline& timeline) {
    return fmt::format("{} pieces of work were dropped: the recording did not keep up with tasks so short.",
                       timeline.dropped);
}

std::vector<size_t> clients_to_name(const Timeline& timeline, size_t most) {
    const Summary sum = summary(timeline);
    std::vector<size_t> order(timeline.clients.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto weight = [&](size_t i) { return sum.clients[i].used_s + sum.clients[i].waited_s; };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return weight(a) > weight(b); });
    order.resize(std::min(order.size(), most));
    std::sort(order.begin(), order.end());
    return order;
}

}  // namespace heddle::trace
