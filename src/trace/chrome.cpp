#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "trace/escape.hpp"
#include "trace/formats.hpp"

namespace heddle::trace {
namespace {

// Process 1 holds the CPUs; clients follow. 0 is left free: viewers take process 0 for the idle one.
constexpr int kCpus = 1;
constexpr int kFirstClient = 2;

// The format counts microseconds; three decimals keep the nanoseconds.
std::string microseconds(int64_t ns) {
    return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

class Events {
  public:
    explicit Events(std::ostream& out) : out_(out) {}

    void add(const std::string& event) {
        out_ << (first_ ? "\n" : ",\n") << event;
        first_ = false;
    }
    void name(const char* what, int pid, int tid, const std::string& name) {
        add(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what, pid, tid,
                        json_string(name)));
    }
    void order(const char* what, int pid, int tid, int index) {
        add(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", what, pid,
                        tid, index));
    }

  private:
    std::ostream& out_;
    bool first_ = true;
};

std::string title(const ClientHistory& client) {
    return client.pid > 0 ? fmt::format("{} (pid {})", client.name, client.pid) : client.name;
}

void write_cpus(const Timeline& timeline, Events& events) {
    events.name("process_name", kCpus, 0, "CPUs");
    events.order("process_sort_index", kCpus, 0, 0);
    for (size_t row = 0; row < timeline.cpus.size(); ++row) {
        const CpuPlace& place = timeline.cpus[row].place;
        const int tid = static_cast<int>(row) + 1;
        events.name("thread_name", kCpus, tid,
                    fmt::format("CPU {} (package {}, NUMA {}, core {})", place.cpu, place.package, place.numa,
                                place.core));
        events.order("thread_sort_index", kCpus, tid, tid);
        for (const Slice& slice : timeline.cpus[row].slices) {
            if (slice.user == kNobody) continue;
            const ClientHistory& client = timeline.clients[static_cast<size_t>(slice.user)];
            std::string args = fmt::format("\"client\":{},\"pid\":{}", client.id.value, client.pid);
            if (slice.owner != kNobody)
                args += fmt::format(",\"owner\":{}",
                                    json_string(timeline.clients[static_cast<size_t>(slice.owner)].name));
            if (slice.component >= 0)
                args += fmt::format(",\"component\":{}",
                                    json_string(timeline.components[static_cast<size_t>(slice.component)]));
            events.add(fmt::format(
                R"({{"ph":"X","cat":"cpu","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                json_string(client.name), kCpus, tid, microseconds(slice.begin_ns),
                microseconds(slice.end_ns - slice.begin_ns), args));
        }
    }
}

void write_counter(const char* name, int pid, const std::vector<Step>& steps, Events& events,
                   const char* of = "CPUs") {
    for (const Step& step : steps)
        events.add(fmt::format(R"({{"ph":"C","name":"{}","pid":{},"tid":0,"ts":{},"args":{{"{}":{}}}}})",
                               name, pid, microseconds(step.at_ns), of, step.value));
}

void write_clients(const Timeline& timeline, Events& events) {
    for (size_t i = 0; i < timeline.clients.size(); ++i) {
        const ClientHistory& client = timeline.clients[i];
        const int pid = kFirstClient + static_cast<int>(i);
        events.name("process_name", pid, 0, title(client));
        events.order("process_sort_index", pid, 0, pid);
        write_counter("held", pid, client.held, events);
        write_counter("demand", pid, client.demand, events);
        write_counter("waiting", pid, client.waiting, events);
        write_counter("paused", pid, client.paused, events, "tasks");
    }
}

std::string arguments(const Work& work) {
    std::string args;
    if (work.task) args += fmt::format("\"task\":{},", *work.task);
    if (work.cpu >= 0) args += fmt::format("\"cpu\":{},", work.cpu);
    if (work.kind == SpanKind::kPaused) args += "\"ends\":\"paused\",";
    if (args.empty()) return args;
    args.pop_back();
    return fmt::format(",\"args\":{{{}}}", args);
}

// An arrow from where a task was paused to where it went on.
void write_arrow(const Timeline& timeline, const Work& from, size_t number, int first_lane, Events& events) {
    if (!from.task) return;
    const auto later = [](const Work& work, int64_t at_ns) { return work.begin_ns < at_ns; };
    auto to = std::lower_bound(timeline.work.begin(), timeline.work.end(), from.resumed_ns, later);
    while (to != timeline.work.end() && (to->task != from.task || to->client != from.client)) ++to;
    if (to == timeline.work.end()) return;
    const auto end = [&](const char* kind, const Work& work, int64_t at_ns) {
        events.add(fmt::format(
            R"({{"ph":{},"cat":"pause","name":"paused","id":{},"pid":{},"tid":{},"ts":{}}})", kind, number,
            kFirstClient + work.client, first_lane + work.lane, microseconds(at_ns)));
    };
    end(R"("s")", from, from.end_ns);
    end(R"("f","bp":"e")", *to, std::max(to->begin_ns, from.end_ns));
}

// Thread numbers are unique over all processes, because some viewers mix up equal ones.
void write_work(const Timeline& timeline, Events& events) {
    const int first = static_cast<int>(timeline.cpus.size()) + 1;
    for (size_t lane = 0; lane < timeline.lanes.size(); ++lane)
        events.name("thread_name", kFirstClient + timeline.lanes[lane].client, first + static_cast<int>(lane),
                    timeline.lanes[lane].name);
    for (const Work& work : timeline.work)
        events.add(fmt::format(R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{}{}}})",
                               work.kind == SpanKind::kWait ? "wait" : "work", json_string(work.name),
                               kFirstClient + work.client, first + work.lane, microseconds(work.begin_ns),
                               microseconds(work.end_ns - work.begin_ns), arguments(work)));
    for (size_t i = 0; i < timeline.work.size(); ++i)
        if (timeline.work[i].kind == SpanKind::kPaused)
            write_arrow(timeline, timeline.work[i], i + 1, first, events);
    for (const Moment& mark : timeline.marks)
        events.add(fmt::format(R"({{"ph":"i","s":"g","cat":"mark","name":{},"pid":{},"tid":0,"ts":{}}})",
                               json_string(mark.text), kCpus, microseconds(mark.at_ns)));
}

}  // namespace

void write_chrome(const Timeline& timeline, std::ostream& out) {
    out << R"({"displayTimeUnit":"ms","otherData":{"machine":)" << json_string(timeline.machine);
    if (timeline.wall_ns) out << R"(,"wall_ns":)" << *timeline.wall_ns;
    if (timeline.dropped > 0) out << R"(,"dropped":)" << timeline.dropped;
    out << R"(},"traceEvents":[)";
    Events events(out);
    write_cpus(timeline, events);
    write_clients(timeline, events);
    write_work(timeline, events);
    out << "\n]}\n";
}

}  // namespace heddle::trace
