#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "trace/axis.hpp"
#include "trace/drawing.hpp"
#include "trace/escape.hpp"
#include "trace/summary.hpp"

namespace heddle::trace {
namespace {

constexpr size_t kWidest = 26;

std::string time(double seconds) {
    return seconds <= 0 ? "0" : duration(static_cast<int64_t>(seconds * 1e9));
}

}  // namespace

void draw_work_accounts(const Timeline& timeline, std::ostream& out, const TextOptions& options) {
    const std::vector<WorkAccount> all = work_summary(timeline);
    if (all.empty()) return;
    const auto put = [&](const std::string& line) { out << (options.ascii ? ascii_only(line) : line); };
    put(fmt::format("{:<{}} {:>10} {:>10} {:>6} {:>10} {:>10} {:>8} {:>10}\n", "task", kWidest, "tasks",
                    "ran", "share", "each", "longest", "pauses", "paused"));
    double run_s = 0;
    int64_t tasks = 0;
    for (const WorkAccount& one : all) {
        run_s += one.run_s;
        tasks += one.ended;
    }
    const auto line = [&](const std::string& name, const WorkAccount& one) {
        const std::string cut = shortened(printable(name), kWidest, options.ascii);
        put(fmt::format("{}{} {:>10} {:>10} {:>4.0f} % {:>10} {:>10} {:>8} {:>10}\n", cut,
                        std::string(kWidest - columns_of(cut), ' '), one.ended, time(one.run_s),
                        run_s > 0 ? 100 * one.run_s / run_s : 0,
                        time(one.run_s / static_cast<double>(std::max<int64_t>(one.ended, 1))),
                        time(one.longest_s), one.pauses, time(one.paused_s)));
    };
    const auto shown = static_cast<size_t>(std::max(options.max_rows, 1));
    WorkAccount rest;
    for (size_t i = 0; i < all.size(); ++i) {
        if (i < shown) {
            line(all[i].name, all[i]);
            continue;
        }
        rest.ended += all[i].ended;
        rest.run_s += all[i].run_s;
        rest.longest_s = std::max(rest.longest_s, all[i].longest_s);
        rest.pauses += all[i].pauses;
        rest.paused_s += all[i].paused_s;
    }
    if (all.size() > shown) line(fmt::format("{} more names", all.size() - shown), rest);
    put(fmt::format("\n{} tasks of {} names on {} workers in {}: {} in tasks\n", tasks, all.size(),
                    timeline.lanes.size(), duration(timeline.end_ns), time(run_s)));
    if (timeline.truncated) put("The recording reached its size bound: what came later is missing.\n");
    if (timeline.dropped > 0) put(dropped_text(timeline) + "\n");
}

}  // namespace heddle::trace
