#include "trace/by_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace heddle::trace {
namespace {

/// "native 2" before "native 10", "main" before both.
std::tuple<bool, std::string, int> order_of(const std::string& lane) {
    const size_t space = lane.rfind(' ');
    int number = 0;
    if (space == std::string::npos) return {lane != "main", lane, number};
    const auto [end, error] = std::from_chars(lane.data() + space + 1, lane.data() + lane.size(), number);
    if (error != std::errc() || end != lane.data() + lane.size()) return {true, lane, 0};
    return {true, lane.substr(0, space), number};
}

class View {
  public:
    explicit View(const Timeline& from) : from_(from), view_(Trace{}) {
        view_.of_tasks = true;
        view_.machine = from.machine;
        view_.wall_ns = from.wall_ns;
        view_.end_ns = from.end_ns;
        view_.marks = from.marks;
        view_.dropped = from.dropped;
        view_.truncated = from.truncated;
    }

    Timeline take() {
        open_rows();
        std::vector<std::vector<const Work*>> open(from_.lanes.size());
        for (const Work& work : from_.work) {
            auto& lane = open[static_cast<size_t>(work.lane)];
            close_until(lane, work.begin_ns);
            if (!lane.empty()) paint(*lane.back(), work.begin_ns);
            lane.push_back(&work);
            painted_until(work) = work.begin_ns;
            if (work.kind == SpanKind::kPaused) {
                changes_[name_of(work)].paused.push_back({work.end_ns, 1});
                changes_[name_of(work)].paused.push_back({work.resumed_ns, -1});
            }
        }
        for (auto& lane : open) close_until(lane, INT64_MAX);
        for (auto& [name, change] : changes_) {
            ClientHistory& client = view_.clients[static_cast<size_t>(name)];
            client.held = steps(change.in);
            client.waiting = steps(change.paused);
        }
        return std::move(view_);
    }

  private:
    using Changes = std::vector<std::pair<int64_t, int>>;

    void open_rows() {
        std::vector<size_t> order(from_.lanes.size());
        for (size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::ranges::stable_sort(order, {}, [&](size_t i) {
            return std::pair(from_.lanes[i].client, order_of(from_.lanes[i].name));
        });
        bool several = false;
        for (const Lane& lane : from_.lanes) several = several || lane.client != from_.lanes.front().client;
        row_of_.resize(order.size());
        until_.resize(order.size());
        for (size_t row = 0; row < order.size(); ++row) {
            const Lane& lane = from_.lanes[order[row]];
            row_of_[order[row]] = row;
            CpuHistory history{{static_cast<int>(row), static_cast<int>(row), 0, 0}, {}, lane.name};
            if (several)
                history.label =
                    fmt::format("{}: {}", from_.clients[static_cast<size_t>(lane.client)].name, lane.name);
            view_.cpus.push_back(std::move(history));
        }
    }

    int64_t& painted_until(const Work& work) { return until_[static_cast<size_t>(work.lane)]; }

    /// Those that end by then, the innermost first.
    void close_until(std::vector<const Work*>& lane, int64_t at_ns) {
        while (!lane.empty() && lane.back()->end_ns <= at_ns) {
            paint(*lane.back(), lane.back()->end_ns);
            lane.pop_back();
        }
    }

    /// The row is this work's from where it was painted last.
    void paint(const Work& work, int64_t end_ns) {
        int64_t& begin = painted_until(work);
        if (work.kind != SpanKind::kWait && begin < end_ns) {
            const Who name = name_of(work);
            view_.cpus[row_of_[static_cast<size_t>(work.lane)]].slices.push_back(
                {begin, end_ns, name, kNobody, -1});
            changes_[name].in.push_back({begin, 1});
            changes_[name].in.push_back({end_ns, -1});
        }
        begin = std::max(begin, end_ns);
    }

    Who name_of(const Work& work) {
        const bool full = view_.clients.size() >= Timeline::kMostTaskNames && !names_.contains(work.name);
        const std::string& name = full ? kOthers : work.name;
        const auto [found, added] = names_.try_emplace(name, static_cast<Who>(view_.clients.size()));
        if (added)
            view_.clients.push_back({Client{static_cast<uint32_t>(found->second)},
                                     0,
                                     name,
                                     work.begin_ns,
                                     {},
                                     {},
                                     {},
                                     {},
                                     {},
                                     {}});
        return found->second;
    }

    static std::vector<Step> steps(Changes& changes) {
        std::ranges::sort(changes);
        std::vector<Step> all;
        int64_t count = 0;
        for (const auto& [at, by] : changes) {
            count += by;
            if (!all.empty() && all.back().at_ns == at)
                all.back().value = count;
            else
                all.push_back({at, count});
        }
        return all;
    }

    struct OfName {
        Changes in, paused;
    };
    const Timeline& from_;
    Timeline view_;
    std::vector<size_t> row_of_;  // of each lane
    std::vector<int64_t> until_;  // the same: painted so far
    std::unordered_map<std::string, Who> names_;
    std::map<Who, OfName> changes_;
    const std::string kOthers = "others";
};

}  // namespace

bool only_work(const Timeline& timeline) {
    return !timeline.work.empty() &&
           std::ranges::all_of(timeline.cpus, [](const CpuHistory& cpu) { return cpu.slices.empty(); });
}

Timeline by_task(const Timeline& timeline) {
    return View(timeline).take();
}

}  // namespace heddle::trace
