// tasks.overhead.ENGINE: what the unified interface costs over the engine's own: the tasks of tasks.cholesky
// by heddle on the engine, and as a program for that engine alone, with 2 workers; empty, and (.tiles) of 50
// us, what a kernel takes on a small tile. The engine's own is shapes/: pragmas with depend clauses,
// starpu_task_insert(), QUARK, PaRSEC's DTD, and for TBB, which has no dependencies, a graph written by hand.
//
// The breakdown is that of seed 003 section 7.3, of a chain of tasks of 5 us: .insert, what an insertion
// takes; .management, from when a task could begin until it does; and "unpack" beside it, what it takes ours
// to bring the arguments to the function. .ks is the two-sample Kolmogorov-Smirnov statistic of the two
// distributions of these latencies by its critical value at 0.01: above 1 ours are longer (one-sided), or,
// beside it, the two differ (two-sided).
#include <algorithm>
#include <cmath>
#include <sstream>

#include "heddle/task.hpp"
#include "shapes/samples.hpp"
#include "shapes/shapes.hpp"

namespace {

using namespace shapes;

constexpr int kWorkers = 2;

struct Pair {
    const char* engine;
    const char* own;  ///< the program of the engine alone
};
constexpr Pair kPairs[] = {{"openmp", "libgomp"}, {"openmp-libomp", "libomp"}, {"tbb", "tbb"},
                           {"starpu", "starpu"},  {"quark", "quark"},          {"parsec", "parsec"}};

/// Ours: heddle on the engine.
Command by_heddle(const Bench& bench, const char* engine, const char* shape) {
    Command command{
        {(bench.programs / "shapes_heddle").string(), "--engine", engine, shape, std::to_string(kWorkers)},
        {"HEDDLE_ARBITER=off"},
        bench.cpus};
    if (bench.quick) command.argv.emplace_back("--quick");
    while (command.cpus.count() > kWorkers) command.cpus.erase(command.cpus.first());
    return command;
}

Command by_itself(const Bench& bench, const char* own, const char* shape) {
    Command command = by_heddle(bench, own, shape);
    command.argv.erase(command.argv.begin(), command.argv.begin() + 3);
    command.argv.insert(command.argv.begin(), (bench.programs / fmt::format("shapes_{}", own)).string());
    return command;
}

std::string output_of(const Command& command) {
    const Outcome outcome = run_together({&command, 1}, std::chrono::seconds(60)).front();
    if (outcome.exit_code != 0)
        throw heddle::Error(heddle::ErrorCode::kUnavailable,
                            fmt::format("{}: {}", command.argv.front(), outcome.errors));
    return outcome.output;
}

void compare(const Bench& bench, const Pair& pair, const char* shape, const std::string& name) {
    const auto contestant = [](const char* who, const Command& command) {
        return Contestant{who, 20, [command](double) {
                              return Sample{std::stod(output_of(command)), false};
                          }};
    };
    const auto all = bench.measure({contestant("heddle/2", by_heddle(bench, pair.engine, shape)),
                                    contestant("own/2", by_itself(bench, pair.own, shape))});
    print_cell(name, all, kWorkers, "ns", {"own"}, {});
}

Latencies latencies_of(const Command& command) {
    std::istringstream words(output_of(command));
    Latencies found;
    words >> found.insertion_ns;
    for (double one; words >> one;) found.waited_ns.push_back(one);
    return found;
}

/// The largest distance between the two distributions, and the largest by which `a` is behind `b`; each by
/// its critical value at 0.01.
struct KolmogorovSmirnov {
    double two_sided = 0, longer = 0;
};
KolmogorovSmirnov kolmogorov_smirnov(std::vector<double> a, std::vector<double> b) {
    std::ranges::sort(a);
    std::ranges::sort(b);
    const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
    double ahead = 0, behind = 0;
    for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
        const double at = std::min(a[i], b[k]);
        while (i < a.size() && a[i] == at) ++i;
        while (k < b.size() && b[k] == at) ++k;
        const double difference = static_cast<double>(i) / n - static_cast<double>(k) / m;
        ahead = std::max(ahead, difference);
        behind = std::max(behind, -difference);
    }
    const double scale = std::sqrt((n + m) / (n * m));
    return {std::max(ahead, behind) / (std::sqrt(-std::log(0.005) / 2) * scale),
            behind / (std::sqrt(-std::log(0.01) / 2) * scale)};
}

/// From the record of a task to its function's arguments, in ns.
double unpacking_ns() {
    const auto function = [](const int& read, int& written) {
        asm volatile("" : : "r"(&read), "r"(&written));
    };
    heddle::detail::DataView view;
    int element = 0;
    view.address = &element;
    using D = heddle::Scalar<int>;
    using Read = heddle::detail::DataArgument<D, heddle::AccessMode::kIn>;
    using Written = heddle::detail::DataArgument<D, heddle::AccessMode::kInOut>;
    using Closure = heddle::detail::Closure<decltype(function), Read, Written>;
    Closure closure{function, {Read{&view}, Written{&view}}};
    heddle::detail::Body body = &Closure::body;
    asm volatile("" : "+r"(body));
    constexpr int kCalls = 2'000'000;
    return time_ns([&] {
               for (int i = 0; i < kCalls; ++i) body(&closure, heddle::detail::BodyAction::kRun);
           }) /
           kCalls;
}

void break_down(const Bench& bench, const Pair& pair, const std::string& name) {
    Figure insert{name + ".insert", "ns", {}}, management{name + ".management", "ns", {}},
        ks{name + ".ks", "x", {}};
    std::vector<double> own_insert, own_management, two_sided, own_against_own;
    std::vector<double> before;
    for (int run = 0; run < (bench.quick ? 3 : 11); ++run) {
        const Latencies ours = latencies_of(by_heddle(bench, pair.engine, "latency"));
        const Latencies own = latencies_of(by_itself(bench, pair.own, "latency"));
        insert.values.push_back(ours.insertion_ns);
        own_insert.push_back(own.insertion_ns);
        management.values.push_back(median(ours.waited_ns));
        own_management.push_back(median(own.waited_ns));
        const KolmogorovSmirnov compared = kolmogorov_smirnov(ours.waited_ns, own.waited_ns);
        ks.values.push_back(compared.longer);
        two_sided.push_back(compared.two_sided);
        if (!before.empty()) own_against_own.push_back(kolmogorov_smirnov(own.waited_ns, before).two_sided);
        before = own.waited_ns;
    }
    insert.peer_median = median(own_insert);
    management.peer_median = median(own_management);
    management.more = {{"unpack", unpacking_ns()}};
    // Two runs of the engine alone differ as well: that is what the figure has to be seen beside.
    ks.more = {{"two_sided", median(two_sided)}, {"own_against_own", median(own_against_own)}};
    print(insert);
    print(management);
    print(ks);
}

/// Why the engine cannot be measured; empty: it can.
std::string missing(const Bench& bench, const Pair& pair) {
    if (!bench.has(pair.own)) return fmt::format("there was no {} when this was built", pair.own);
    for (const heddle::EngineInfo& engine : heddle::Runtime::engines())
        if (engine.name == pair.engine) return engine.reason;
    return "";
}

void run(const Bench& bench) {
    if (bench.cpus.count() < kWorkers) return;
    for (const Pair& pair : kPairs) {
        const std::string name = fmt::format("tasks.overhead.{}", pair.engine);
        if (const std::string why = missing(bench, pair); !why.empty()) {
            for (const char* part : {"", ".tiles", ".insert", ".management", ".ks"})
                print_skipped((name + part).c_str(), why);
            continue;
        }
        try {
            compare(bench, pair, "cholesky", name);
            compare(bench, pair, "tiles", name + ".tiles");
            break_down(bench, pair, name);
        } catch (const heddle::Error& error) {
            std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    return run_bench(argc, argv, run);
}
