#include "trace/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace heddle::trace {
namespace {

double seconds(int64_t ns) {
    return static_cast<double>(ns) * 1e-9;
}

double integral_s(const std::vector<Step>& steps, int64_t end_ns) {
    double sum = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
        const int64_t until = i + 1 < steps.size() ? steps[i + 1].at_ns : end_ns;
        sum += static_cast<double>(steps[i].value) * seconds(until - steps[i].at_ns);
    }
    return sum;
}

}  // namespace

Summary summary(const Timeline& timeline) {
    Summary sum;
    sum.elapsed_s = seconds(timeline.end_ns);
    sum.capacity_s = sum.elapsed_s * static_cast<double>(timeline.cpus.size());
    sum.clients.resize(timeline.clients.size());
    const auto account = [&](Who who) -> Account& { return sum.clients[static_cast<size_t>(who)]; };
    for (const CpuHistory& cpu : timeline.cpus) {
        for (const Slice& slice : cpu.slices) {
            const double length = seconds(slice.end_ns - slice.begin_ns);
            if (slice.user == kNobody) {
                account(slice.owner).idle_s += length;
                continue;
            }
            account(slice.user).used_s += length;
            sum.used_s += length;
            if (slice.owner == kNobody || slice.owner == slice.user) continue;
            account(slice.user).borrowed_s += length;
            account(slice.owner).lent_s += length;
            sum.lent_s += length;
        }
    }
    for (size_t i = 0; i < timeline.clients.size(); ++i)
        sum.clients[i].waited_s = integral_s(timeline.clients[i].waiting, timeline.end_ns);
    sum.idle_s = std::max(0.0, sum.capacity_s - sum.used_s);
    return sum;
}

std::vector<WorkAccount> work_summary(const Timeline& timeline) {
    std::map<std::string, WorkAccount> by_name;
    // Of each lane the work that has begun, the innermost last, with what is its own so far.
    struct Open {
        const Work* work;
        int64_t own_ns;
    };
    std::vector<std::vector<Open>> open(timeline.lanes.size());
    const auto close = [&](std::vector<Open>& lane) {
        const auto [work, own_ns] = lane.back();
        lane.pop_back();
        const double own_s = seconds(std::max<int64_t>(own_ns, 0));
        if (work->kind == SpanKind::kWait) {
            if (!lane.empty()) by_name[lane.back().work->name].paused_s += own_s;
            return;
        }
        WorkAccount& account = by_name[work->name];
        account.run_s += own_s;
        account.longest_s = std::max(account.longest_s, own_s);
        if (work->kind == SpanKind::kWork) {
            ++account.ended;
        } else {
            ++account.pauses;
            account.paused_s += seconds(work->resumed_ns - work->end_ns);
        }
    };
    for (const Work& work : timeline.work) {
        std::vector<Open>& lane = open[static_cast<size_t>(work.lane)];
        while (!lane.empty() && lane.back().work->end_ns <= work.begin_ns) close(lane);
        const int64_t length = work.end_ns - work.begin_ns;
        if (!lane.empty()) lane.back().own_ns -= length;
        lane.push_back({&work, length});
    }
    for (auto& lane : open)
        while (!lane.empty()) close(lane);
    std::vector<WorkAccount> all;
    for (auto& [name, account] : by_name) {
        account.name = name;
        all.push_back(std::move(account));
    }
    std::ranges::stable_sort(all, std::ranges::greater(), &WorkAccount::run_s);
    return all;
}

AccountUnit account_unit(double value) {
    if (value < 0.9995e-3) return {1e-6, "core-µs"};
    if (value < 0.9995) return {1e-3, "core-ms"};
    return {1, "core-s"};
}

std::string core_seconds(double value) {
    if (value <= 0) return "0";
    const AccountUnit unit = account_unit(value);
    const double figure = value / unit.seconds;
    return figure < 999.5 ? fmt::format("{:.3g} {}", figure, unit.name)
                          : fmt::format("{:.0f} {}", figure, unit.name);
}

}  // namespace heddle::trace
