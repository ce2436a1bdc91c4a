#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <ostream>
#include <unordered_map>

#include "trace/escape.hpp"
#include "trace/formats.hpp"
#include "trace/palette.hpp"

namespace heddle::trace {
namespace {

// Event types, chosen in a range that other tracers leave free.
constexpr int kUserType = 92'000'001;
constexpr int kHeldType = 92'000'002;
constexpr int kDemandType = 92'000'003;
constexpr int kWaitingType = 92'000'004;
constexpr int kMarkType = 92'000'005;
constexpr int kWorkType = 92'000'006;
constexpr int kPausedType = 92'000'007;
constexpr int kRunning = 1;

class ParaverWriter {
  public:
    ParaverWriter(const Timeline& timeline, const Paraver& out) : timeline_(timeline), out_(out) {
        lane_thread_.resize(timeline.lanes.size());
        threads_.resize(timeline.clients.size());
        for (size_t i = 0; i < timeline.lanes.size(); ++i) {
            std::vector<size_t>& workers = threads_[static_cast<size_t>(timeline.lanes[i].client)].workers;
            workers.push_back(i);
            lane_thread_[i] = workers.size();
        }
    }

    void run() {
        collect_cpus();
        collect_clients();
        collect_work();
        write_header();
        write_records();
        write_names();
        write_rows();
    }

  private:
    // A record that waits to be written by time; `place` is "cpu:application:task:thread".
    struct Record {
        int64_t at_ns;
        size_t cpu, application, task, thread;
        int64_t end_ns;  // of a state
        int type;        // of an event; 0 makes it a state
        int64_t value;
        bool ends = value == 0;  // what does goes before what begins at the same moment
    };

    // The threads of a client: in task 1 one for each CPU that it ever used, in task 2 its workers.
    struct Threads {
        std::vector<size_t> rows;                      // CPU rows, by thread
        std::unordered_map<size_t, size_t> thread_of;  // the other way round, from 1
        std::vector<size_t> workers;                   // lanes, by thread
        [[nodiscard]] size_t cpus() const { return std::max<size_t>(rows.size(), 1); }
    };

    void write_header() {
        const std::time_t wall = static_cast<std::time_t>(timeline_.wall_ns.value_or(0) / 1'000'000'000);
        const size_t cpus = std::max<size_t>(timeline_.cpus.size(), 1);
        out_.prv << fmt::format("#Paraver ({:%d/%m/%Y at %H:%M}):{}_ns:1({}):{}:1({}:1)", fmt::gmtime(wall),
                                timeline_.end_ns, cpus, 1 + timeline_.clients.size(), cpus);
        for (const Threads& of : threads_)
            out_.prv << (of.workers.empty() ? fmt::format(",1({}:1)", of.cpus())
                                            : fmt::format(",2({}:1,{}:1)", of.cpus(), of.workers.size()));
        out_.prv << '\n';
    }

    void collect_cpus() {
        for (size_t row = 0; row < timeline_.cpus.size(); ++row) {
            const size_t cpu = row + 1;
            const auto& slices = timeline_.cpus[row].slices;
            for (size_t i = 0; i < slices.size(); ++i) {
                const Slice& slice = slices[i];
                records_.push_back({slice.begin_ns, cpu, 1, 1, cpu, 0, kUserType, slice.user + 1});
                if (i + 1 == slices.size() || slice.end_ns < slices[i + 1].begin_ns)
                    records_.push_back({slice.end_ns, cpu, 1, 1, cpu, 0, kUserType, 0});
                if (slice.user == kNobody) continue;
                const auto user = static_cast<size_t>(slice.user);
                records_.push_back(
                    {slice.begin_ns, cpu, user + 2, 1, thread_on(user, row), slice.end_ns, 0, kRunning});
            }
        }
    }

    size_t thread_on(size_t user, size_t row) {
        Threads& of = threads_[user];
        const auto [found, added] = of.thread_of.try_emplace(row, of.rows.size() + 1);
        if (added) of.rows.push_back(row);
        return found->second;
    }

    void collect_clients() {
        for (size_t i = 0; i < timeline_.clients.size(); ++i) {
            const auto add = [&](int type, const std::vector<Step>& steps) {
                for (const Step& step : steps)
                    records_.push_back({step.at_ns, 1, i + 2, 1, 1, 0, type, step.value});
            };
            add(kHeldType, timeline_.clients[i].held);
            add(kDemandType, timeline_.clients[i].demand);
            add(kWaitingType, timeline_.clients[i].waiting);
            add(kPausedType, timeline_.clients[i].paused);
            pauses_ = pauses_ || !timeline_.clients[i].paused.empty();
        }
        for (size_t i = 0; i < timeline_.marks.size(); ++i)
            records_.push_back(
                {timeline_.marks[i].at_ns, 1, 1, 1, 1, 0, kMarkType, static_cast<int64_t>(i) + 1});
    }

    void collect_work() {
        std::vector<std::vector<const Work*>> lanes(timeline_.lanes.size());
        for (const Work& work : timeline_.work) {
            if (work.begin_ns == work.end_ns) continue;  // it would end before it begins
            work_value_.try_emplace(work.name, static_cast<int64_t>(work_value_.size()) + 1);
            lanes[static_cast<size_t>(work.lane)].push_back(&work);
        }
        for (auto& lane : lanes) collect_lane(lane);
    }

    // An event says what runs from then on: where a piece ends, that is the one around it.
    void collect_lane(std::vector<const Work*>& lane) {
        std::stable_sort(lane.begin(), lane.end(), [](const Work* a, const Work* b) {
            return std::pair(a->begin_ns, b->end_ns) < std::pair(b->begin_ns, a->end_ns);
        });
        std::vector<const Work*> around;
        const auto end_until = [&](int64_t moment_ns) {
            while (!around.empty()) {
                const auto next =
                    std::min_element(around.rbegin(), around.rend(),
                                     [](const Work* a, const Work* b) { return a->end_ns < b->end_ns; });
                const Work& ended = **next;
                if (ended.end_ns > moment_ns) return;
                around.erase(std::next(next).base());
                add_work(ended, ended.end_ns, around.empty() ? 0 : work_value_.at(around.back()->name), true);
            }
        };
        for (const Work* work : lane) {
            end_until(work->begin_ns);
            around.push_back(work);
            add_work(*work, work->begin_ns, work_value_.at(work->name), false);
        }
        end_until(INT64_MAX);
    }

    void add_work(const Work& work, int64_t at_ns, int64_t value, bool ends) {
        records_.push_back({at_ns, number_of(work.cpu), static_cast<size_t>(work.client) + 2, 2,
                            lane_thread_[static_cast<size_t>(work.lane)], 0, kWorkType, value, ends});
    }

    // Of a CPU among those of the machine; the first for one that is not known.
    size_t number_of(int cpu) const {
        for (size_t row = 0; row < timeline_.cpus.size(); ++row)
            if (timeline_.cpus[row].place.cpu == cpu) return row + 1;
        return 1;
    }

    void write_records() {
        std::stable_sort(records_.begin(), records_.end(), [](const Record& a, const Record& b) {
            return std::pair(a.at_ns, !a.ends) < std::pair(b.at_ns, !b.ends);
        });
        for (const Record& r : records_) {
            if (r.type == 0)
                out_.prv << fmt::format("1:{}:{}:{}:{}:{}:{}:{}\n", r.cpu, r.application, r.task, r.thread,
                                        r.at_ns, r.end_ns, r.value);
            else
                out_.prv << fmt::format("2:{}:{}:{}:{}:{}:{}:{}\n", r.cpu, r.application, r.task, r.thread,
                                        r.at_ns, r.type, r.value);
        }
    }

    void write_type(int type, const char* name) {
        out_.pcf << fmt::format("EVENT_TYPE\n0    {}    {}\n", type, name);
    }

    void write_names() {
        out_.pcf << "DEFAULT_OPTIONS\n\nLEVEL               CPU\nUNITS               NANOSEC\n\n"
                 << "STATES\n0    Idle\n1    Running\n\n"
                 << "STATES_COLOR\n0    {230,234,239}\n1    {42,157,92}\n\n";
        write_type(kUserType, "Client that uses the CPU");
        out_.pcf << "VALUES\n0    idle\n";
        for (size_t i = 0; i < timeline_.clients.size(); ++i)
            out_.pcf << fmt::format("{}    {}\n", i + 1, title(timeline_.clients[i]));
        out_.pcf << '\n';
        write_type(kHeldType, "CPUs that the client holds");
        out_.pcf << '\n';
        write_type(kDemandType, "CPUs that the client can use");
        out_.pcf << '\n';
        write_type(kWaitingType, "CPUs that the client waits for");
        out_.pcf << '\n';
        if (pauses_) {
            write_type(kPausedType, "Tasks that are paused");
            out_.pcf << '\n';
        }
        write_type(kMarkType, "Mark");
        out_.pcf << "VALUES\n";
        for (size_t i = 0; i < timeline_.marks.size(); ++i)
            out_.pcf << fmt::format("{}    {}\n", i + 1, printable(timeline_.marks[i].text));
        out_.pcf << '\n';
        write_type(kWorkType, "Work");
        out_.pcf << "VALUES\n0    none\n";
        for (const auto& [name, value] : work_value_)
            out_.pcf << fmt::format("{}    {}\n", value, printable(name));
    }

    void write_rows() {
        size_t tasks = 1;
        size_t threads = std::max<size_t>(timeline_.cpus.size(), 1);
        out_.row << "LEVEL CPU SIZE " << threads << '\n';
        write_cpu_rows();
        out_.row << "\nLEVEL NODE SIZE 1\n"
                 << (timeline_.machine.empty() ? "machine" : printable(timeline_.machine)) << '\n';
        out_.row << "\nLEVEL APPL SIZE " << 1 + timeline_.clients.size() << "\nmachine\n";
        for (const ClientHistory& client : timeline_.clients) out_.row << title(client) << '\n';
        for (const Threads& of : threads_) {
            tasks += of.workers.empty() ? 1 : 2;
            threads += of.cpus() + of.workers.size();
        }
        out_.row << "\nLEVEL TASK SIZE " << tasks << "\nCPUs\n";
        for (size_t i = 0; i < threads_.size(); ++i) {
            out_.row << "CPUs of " << title(timeline_.clients[i]) << '\n';
            if (!threads_[i].workers.empty())
                out_.row << "Workers of " << title(timeline_.clients[i]) << '\n';
        }
        out_.row << "\nLEVEL THREAD SIZE " << threads << '\n';
        write_cpu_rows();
        for (const Threads& of : threads_) {
            for (const size_t row : of.rows) out_.row << "CPU " << timeline_.cpus[row].place.cpu << '\n';
            if (of.rows.empty()) out_.row << "no CPU\n";
            for (const size_t lane : of.workers) out_.row << printable(timeline_.lanes[lane].name) << '\n';
        }
    }

    void write_cpu_rows() {
        for (const CpuHistory& cpu : timeline_.cpus) out_.row << "CPU " << cpu.place.cpu << '\n';
        if (timeline_.cpus.empty()) out_.row << "no CPU\n";
    }

    static std::string title(const ClientHistory& client) {
        return printable(fmt::format("{} (pid {})", client.name, client.pid));
    }

    const Timeline& timeline_;
    const Paraver& out_;
    std::vector<Record> records_;
    std::vector<Threads> threads_;               // of each client
    std::vector<size_t> lane_thread_;            // of each lane, its thread in task 2
    std::map<std::string, int64_t> work_value_;  // for each name of work
    bool pauses_ = false;
};

}  // namespace

void write_paraver(const Timeline& timeline, const Paraver& out) {
    ParaverWriter(timeline, out).run();
}

}  // namespace heddle::trace
