#include "trace/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

namespace heddle::trace {
namespace {

// Sets the value from a moment on; the last of several steps at one moment wins.
void step(std::vector<Step>& steps, int64_t at_ns, int64_t value) {
    if (!steps.empty() && steps.back().at_ns == at_ns)
        steps.back().value = value;
    else if ((steps.empty() ? 0 : steps.back().value) != value)
        steps.push_back({at_ns, value});
}

// Builds a timeline; one event after the other, by time.
class Builder {
  public:
    explicit Builder(Timeline& timeline) : timeline_(timeline) {}

    void open_cpus(const std::vector<CpuPlace>& places) {
        for (const CpuPlace& place : places) timeline_.cpus.push_back({place, {}, {}});
        std::sort(timeline_.cpus.begin(), timeline_.cpus.end(), [](const CpuHistory& a, const CpuHistory& b) {
            const auto key = [](const CpuPlace& p) { return std::tuple(p.package, p.numa, p.core, p.cpu); };
            return key(a.place) < key(b.place);
        });
        now_.resize(timeline_.cpus.size());
        for (size_t i = 0; i < timeline_.cpus.size(); ++i) row_of_[timeline_.cpus[i].place.cpu] = i;
    }

    void apply(const Event& event) {
        at_ns_ = event.at_ns;
        std::visit([this](const auto& what) { on(what); }, event.what);
        timeline_.end_ns = std::max(timeline_.end_ns, event.at_ns);
    }

    void finish() {
        at_ns_ = timeline_.end_ns;
        for (size_t row = 0; row < now_.size(); ++row) end_slice(row);
        std::stable_sort(timeline_.work.begin(), timeline_.work.end(), [](const Work& a, const Work& b) {
            return std::pair(a.begin_ns, b.end_ns) < std::pair(b.begin_ns, a.end_ns);
        });
        find_pauses();
    }

  private:
    void on(const Joined& e) {
        ClientHistory& client = history(who(e.client));
        client.pid = e.pid;
        client.name = e.name;
        client.joined_ns = at_ns_;
    }
    void on(const Left& e) {
        const Who leaver = who(e.client);
        for (size_t row = 0; row < now_.size() && held_[leaver] > 0; ++row)
            if (now_[row].user == leaver) change(row, kNobody, now_[row].owner, -1);
        ClientHistory& client = history(leaver);
        client.left_ns = at_ns_;
        client.how = e.how;
        step(client.demand, at_ns_, 0);
        step(client.waiting, at_ns_, 0);
    }
    void on(const CpuChanged& e) {
        const auto row = row_of_.find(e.cpu);
        if (row == row_of_.end()) return;
        change(row->second, e.user ? who(*e.user) : kNobody, e.owner ? who(*e.owner) : kNobody,
               e.component.empty() ? -1 : component(e.component));
    }
    void on(const DemandChanged& e) { step(history(who(e.client)).demand, at_ns_, e.cpus); }
    void on(const WaitingChanged& e) { step(history(who(e.client)).waiting, at_ns_, e.cpus); }
    void on(const Mark& e) {
        if (e.text == kTruncatedMark) timeline_.truncated = true;
        if (e.text != kEndMark) timeline_.marks.push_back({at_ns_, e.text});
    }
    void on(const Dropped& e) {
        if (__builtin_add_overflow(timeline_.dropped, e.pieces, &timeline_.dropped))
            timeline_.dropped = std::numeric_limits<int64_t>::max();
    }
    void on(const Span& e) {
        const Who client = who(e.client);
        const auto [lane, added] =
            lane_of_.try_emplace({client, e.lane}, static_cast<int>(timeline_.lanes.size()));
        if (added) timeline_.lanes.push_back({client, e.lane});
        timeline_.work.push_back(
            {std::min(e.begin_ns, at_ns_), at_ns_, client, lane->second, e.name, e.kind, e.task, e.cpu, 0});
    }

    // A task that was paused goes on where its next piece begins; one without a number at once, as nobody
    // could tell.
    void find_pauses() {
        std::map<std::pair<Who, int64_t>, size_t> paused;
        std::map<Who, std::vector<std::pair<int64_t, int>>> changes;
        for (size_t i = 0; i < timeline_.work.size(); ++i) {
            Work& work = timeline_.work[i];
            work.resumed_ns = work.end_ns;
            if (!work.task || work.kind == SpanKind::kWait) continue;
            const std::pair key(work.client, *work.task);
            if (const auto before = paused.find(key); before != paused.end()) {
                // Clocks of two CPUs may differ by a little.
                Work& piece = timeline_.work[before->second];
                piece.resumed_ns = std::max(work.begin_ns, piece.end_ns);
                changes[work.client].push_back({piece.resumed_ns, -1});
                paused.erase(before);
            }
            if (work.kind != SpanKind::kPaused) continue;
            work.resumed_ns = timeline_.end_ns;
            changes[work.client].push_back({work.end_ns, 1});
            paused.emplace(key, i);
        }
        for (auto& [client, all] : changes) {
            std::ranges::sort(all);
            int64_t count = 0;
            for (const auto& [at, by] : all) step(history(client).paused, at, count += by);
        }
    }

    void change(size_t row, Who user, Who owner, int component) {
        Slice& now = now_[row];
        if (now.user == user && now.owner == owner && now.component == component) return;
        end_slice(row);
        const Who before = now.user;
        now = {at_ns_, at_ns_, user, owner, component};
        if (before == user) return;
        if (before != kNobody) step(history(before).held, at_ns_, --held_[before]);
        if (user != kNobody) step(history(user).held, at_ns_, ++held_[user]);
    }

    void end_slice(size_t row) {
        Slice slice = now_[row];
        slice.end_ns = at_ns_;
        if (slice.begin_ns < slice.end_ns && (slice.user != kNobody || slice.owner != kNobody))
            timeline_.cpus[row].slices.push_back(slice);
    }

    Who who(Client client) {
        const auto [found, added] =
            who_.try_emplace(client.value, static_cast<Who>(timeline_.clients.size()));
        if (added)
            timeline_.clients.push_back(
                {client, 0, fmt::format("client {}", client.value), at_ns_, {}, {}, {}, {}, {}, {}});
        return found->second;
    }

    int component(const std::string& name) {
        const auto [found, added] =
            component_.try_emplace(name, static_cast<int>(timeline_.components.size()));
        if (added) timeline_.components.push_back(name);
        return found->second;
    }

    ClientHistory& history(Who who) { return timeline_.clients[static_cast<size_t>(who)]; }

    Timeline& timeline_;
    int64_t at_ns_ = 0;
    std::vector<Slice> now_;  // for each CPU the slice that has not ended
    std::unordered_map<int, size_t> row_of_;
    std::unordered_map<uint32_t, Who> who_;
    std::unordered_map<Who, int64_t> held_;
    std::unordered_map<std::string, int> component_;
    std::map<std::pair<Who, std::string>, int> lane_of_;
};

}  // namespace

Timeline::Timeline(const Trace& trace) : machine(trace.header.machine), wall_ns(trace.header.wall_ns) {
    Builder builder(*this);
    builder.open_cpus(trace.header.cpus);
    for (const Event& event : trace.events) builder.apply(event);
    builder.finish();
}

}  // namespace heddle::trace
