// Two programs of streams at once, each with four boxes of 20 us that may be called on all CPUs at once.
//
// streams.shared: seconds from the common start to the later end, under one arbiter, beside the better of two
// ways without: both as the system runs them, and each with half of the CPUs by affinity.
// streams.shared_throughput: records a second of both under the arbiter, beside those of one program that has
// all CPUs and as many records as the two.
//
// This program runs the others, in turn; it is them as `streams_shared --program RECORDS STEPS START_NS`,
// which stands at the gate until START_NS of CLOCK_MONOTONIC and prints when it ended.
#include <atomic>
#include <thread>

#include "heddle/streams.hpp"
#include "shapes/samples.hpp"
#include "steps.hpp"

namespace {

using namespace shapes;
using Clock = std::chrono::steady_clock;

constexpr int kPrograms = 2;
/// Until the programs stand at the gate.
constexpr auto kLead = std::chrono::milliseconds(300);

void run_program(long records, long steps, Clock::time_point start) {
    using namespace heddle::snet;  // NOLINT: it is all about these
    using Number = Field<"number", long>;
    const int cpus = heddle::allowance(heddle::Machine::detect()).usable.count();
    const auto stage = [&](const char* name) {
        const auto step = [steps](long number) { return number + (work(steps, number) & 1); };
        return box<In<Number>, Out<Number>>(name, step, {.calls = cpus, .ordered = false});
    };
    std::atomic<long> left{0};
    NetworkOptions options;
    options.output = [&](const Record& /*record*/) { left.fetch_add(1, std::memory_order_relaxed); };
    Network network(stage("a") >> stage("b") >> stage("c") >> stage("d"), options);
    std::this_thread::sleep_until(start);
    for (long i = 0; i < records; ++i) network.push(record<Number>(i));
    network.settle();
    const auto end = Clock::now().time_since_epoch();
    if (left != records) throw std::runtime_error("a record was lost");
    fmt::print("{}\n", std::chrono::nanoseconds(end).count());
}

struct Programs {
    const char* name;
    int count;
    bool under_arbiter;
    bool halves;
};

CpuSet part_of(const CpuSet& cpus, int part, int parts) {
    CpuSet share;
    int index = 0;
    for (const int cpu : cpus) {
        if (index * parts / cpus.count() == part) share.insert(cpu);
        ++index;
    }
    return share;
}

/// Seconds from the gate to the later end.
Sample run_once(const Bench& bench, const Programs& programs, long records, long steps, double cut_s) {
    const auto gate = Clock::now() + kLead;
    std::vector<Command> commands;
    for (int i = 0; i < programs.count; ++i) {
        Command command{{std::filesystem::read_symlink("/proc/self/exe").string(), "--program",
                         std::to_string(records / programs.count), std::to_string(steps),
                         std::to_string(std::chrono::nanoseconds(gate.time_since_epoch()).count())},
                        {},
                        {}};
        if (!programs.under_arbiter) command.environment.emplace_back("HEDDLE_ARBITER=off");
        if (programs.halves) command.cpus = part_of(bench.cpus, i, programs.count);
        commands.push_back(std::move(command));
    }
    const auto limit = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(std::max(cut_s, 5.0)) + kLead);
    Clock::time_point end = gate;
    for (const Outcome& outcome : run_together(commands, limit)) {
        if (outcome.cut) return {cut_s, true};
        if (outcome.exit_code != 0)
            throw heddle::Error(heddle::ErrorCode::kUnavailable,
                                fmt::format("{}: {}", programs.name, outcome.errors));
        end = std::max(end, Clock::time_point(std::chrono::nanoseconds(std::stoll(outcome.output))));
    }
    return {std::chrono::duration<double>(end - gate).count(), false};
}

Series as_rates(Series series, long records) {
    for (Sample& sample : series.samples) sample.value = static_cast<double>(records) / sample.value;
    return series;
}

/// Where none listens. Throws kUnavailable where none can be had.
void start_arbiter(const Bench& bench) {
    for (const char* place : {"../bin/heddle", "../../../bin/heddle"}) {  // where it was built, and installed
        const Command command{{(bench.programs / place).string(), "start"}, {}, {}};
        if (std::filesystem::exists(command.argv[0]) &&
            run_together({&command, 1}, std::chrono::seconds(10)).front().exit_code == 0)
            return;
    }
    throw heddle::Error(heddle::ErrorCode::kUnavailable, "there is no arbiter");
}

void run(const Bench& bench) {
    if (bench.cpus.count() < kPrograms) return;
    start_arbiter(bench);
    const long steps = steps_for(20), records = bench.quick ? 1'000 : 20'000;
    std::vector<Contestant> contestants;
    for (const Programs& programs :
         {Programs{"heddle/2", kPrograms, true, false}, Programs{"os/2", kPrograms, false, false},
          Programs{"static/2", kPrograms, false, true}, Programs{"alone/2", 1, false, false}})
        contestants.push_back({programs.name, 20, [=, &bench](double cut_s) {
                                   return run_once(bench, programs, records, steps, cut_s);
                               }});
    const auto all = bench.measure(contestants);
    const Series* const ours = find(all, "heddle/2");
    if (ours == nullptr) return;
    if (const Series* const best = best_of(all, kPrograms, {"os", "static"}))
        print("streams.shared", summarize(ours->samples), "s", best);
    if (const Series* const alone = find(all, "alone/2")) {
        const Series one = as_rates(*alone, records);
        print("streams.shared_throughput", summarize(as_rates(*ours, records).samples), "1/s", &one);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 5 && std::strcmp(argv[1], "--program") == 0) {
        try {
            run_program(std::atol(argv[2]), std::atol(argv[3]),
                        Clock::time_point(std::chrono::nanoseconds(std::atoll(argv[4]))));
            return 0;
        } catch (const std::exception& error) {
            std::fprintf(stderr, "streams_shared: %s\n", error.what());
            return 1;
        }
    }
    return run_bench(argc, argv, run);
}
