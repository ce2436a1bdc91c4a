// heddle bench [NAME...]: every benchmark with its peers in the same run.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "../number_within.hpp"
#include "base/standard_streams.hpp"
#include "bench/benchmarks.hpp"
#include "bench/figure_programs.hpp"
#include "bench/measure.hpp"
#include "bench/peers.hpp"
#include "bench/report.hpp"
#include "command.hpp"
#include "heddle/error.hpp"

namespace heddle::tool {
namespace {

using namespace heddle::bench;

struct BenchOptions {
    std::vector<std::string> names;
    std::vector<std::string> peers;
    int runs = 11;
    double wait_quiet_s = 0;
    bool quick = false;
    bool json = false;
    bool list = false;
};

bool wanted(const BenchOptions& options, std::string_view name) {
    return options.names.empty() || std::ranges::any_of(options.names, [&](const std::string& prefix) {
               return name.starts_with(prefix);
           });
}

bool wanted(const BenchOptions& options, const Benchmark& benchmark) {
    return std::ranges::any_of(benchmark.claims,
                               [&](const Claim& claim) { return wanted(options, claim.name); });
}

void list() {
    for (const Benchmark& benchmark : benchmarks())
        for (const Claim& claim : benchmark.claims)
            fmt::print("{:<34} {} (against: {})\n", claim.name, benchmark.what, claim.against);
    for (const Figure& figure : figures())
        fmt::print("{:<34} {} (against: {})\n", figure.name, figure.what, figure.against);
}

void check(const BenchOptions& options) {
    for (const std::string& name : options.names) {
        BenchOptions one;
        one.names = {name};
        const bool known =
            std::ranges::any_of(benchmarks(), [&](const Benchmark& b) { return wanted(one, b); }) ||
            std::ranges::any_of(figures(), [&](const Figure& f) { return wanted(one, f.name); });
        if (!known) throw UsageError(fmt::format("no benchmark's name begins with '{}'; see --list", name));
    }
    for (const std::string& name : options.peers)
        if (std::ranges::find(peers(), name, &Peer::name) == peers().end())
            throw UsageError(fmt::format(
                "there is no peer '{}'; there are os, active, passive, static, dlb, heddle", name));
}

/// A line that is written over and goes at the end; only on a terminal.
class Progress {
  public:
    void show(std::string_view text) const {
        if (terminal_) to_stderr("\r\033[K{}", text);
    }
    ~Progress() { show(""); }

  private:
    bool terminal_ = isatty(STDERR_FILENO) != 0;
};

struct Session {
    std::vector<Result> results;
    std::vector<std::string> complaints;  // what could not be measured, a line each
    std::vector<std::string> skipped;     // what there is nothing here to measure with, likewise
};

void run_benchmark(const Benchmark& benchmark, const BenchOptions& options, const Host& host,
                   MachineLoad& load, Session& session) {
    const std::string_view name = benchmark.claims.front().name;
    std::vector<Series> all;
    try {
        const Progress progress;
        prepare(benchmark, host);
        Schedule schedule;
        schedule.runs = options.runs * (options.quick ? 1 : benchmark.runs_factor);
        schedule.progress = [&](const std::string& contestant, int round) {
            progress.show(fmt::format("{} {} {}/{}", name, contestant, round + 1, schedule.runs));
        };
        all = interleave(contestants(benchmark, options.peers, host, load), schedule);
    } catch (const Error& error) {
        session.complaints.push_back(fmt::format("{}: {}", name, error.what()));
        return;
    }
    for (const std::string& failure : failures(all))
        session.complaints.push_back(fmt::format("{}: {}", name, failure));
    std::vector<Result> results;
    for (const Claim& claim : benchmark.claims) {
        if (!wanted(options, claim.name)) continue;
        if (const auto result = judge(claim, all)) {
            results.push_back(*result);
        } else if (options.peers.empty()) {
            const auto ours = std::ranges::find(all, "heddle", &Series::name);
            session.complaints.push_back(fmt::format(
                "{}: {}", claim.name, ours->skipped.empty() ? "no peer could be measured" : ours->skipped));
        }
    }
    if (!options.json) {
        fmt::print("{}\n", table(benchmark, all, results, load.take_others_share()));
        std::fflush(stdout);
    }
    session.results.insert(session.results.end(), results.begin(), results.end());
}

void bench(const BenchOptions& given) {
    BenchOptions options = given;
    if (options.list) return list();
    if (options.quick) options.runs = 3;
    check(options);
    const OneAtATime alone(
        [] { to_stderr("heddle: another heddle bench is running; waiting for it to end\n"); });
    const ScratchFolder scratch;
    ::setenv("TMPDIR", scratch.path().c_str(), 1);  // what its programs leave behind goes with it
    Host host = find_host(scratch);
    calibrate(host);
    MachineLoad load(
        std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(options.wait_quiet_s)));
    Session session;
    for (const Benchmark& benchmark : benchmarks())
        if (wanted(options, benchmark)) run_benchmark(benchmark, options, host, load, session);
    if (options.peers.empty()) {
        const FigureResults figures_told = run_figure_programs(
            host, options.quick, [&](std::string_view name) { return wanted(options, name); });
        for (const Result& result : figures_told.results) {
            if (!options.json) fmt::print("{}", line(result));
            session.results.push_back(result);
        }
        session.complaints.insert(session.complaints.end(), figures_told.complaints.begin(),
                                  figures_told.complaints.end());
        session.skipped = figures_told.skipped;
    }
    if (options.json) fmt::print("{}\n", results_json(session.results).dump(1));
    for (const std::string& one : session.skipped) to_stderr("heddle: skipped: {}\n", one);
    for (const std::string& complaint : session.complaints) to_stderr("heddle: {}\n", complaint);
    const size_t missed = session.complaints.size() + (session.results.empty() ? session.skipped.size() : 0);
    if (missed > 0)
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("{} of the figures asked for could not be measured", missed));
}

}  // namespace

void add_bench(CLI::App& app) {
    auto options = std::make_shared<BenchOptions>();
    CLI::App* const command = app.add_subcommand("bench", "Measure heddle beside its peers in the same run");
    command->add_option("NAME", options->names, "only benchmarks whose name begins so; see --list");
    command->add_option("--runs", options->runs, "runs of each peer, interleaved")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command->add_flag("--quick", options->quick, "three runs: a look, not a figure");
    command->add_option("--peers", options->peers, "only these: os,active,passive,static,dlb,heddle")
        ->delimiter(',')
        ->allow_extra_args(false);
    command
        ->add_option("--wait-quiet", options->wait_quiet_s,
                     "seconds to wait in all, before runs, for other programs to be idle")
        ->check(number_within(0, 86400));
    command->add_flag("--json", options->json, "print the figures as JSON");
    command->add_flag("--list", options->list, "print the benchmarks' names and end");
    command->callback([options] { bench(*options); });
}

}  // namespace heddle::tool
