// tasks.composition: a parallel program that calls libraries on three engines (composition.cpp) on two CPUs
// under heddle, beside the best static partition, found by trying all: each library its own set of CPUs, and
// all of them one after the other with all CPUs. tasks.composition_vs_uncoordinated: beside each runtime with
// all CPUs as it finds them.
//
// Each sample is a process of its own. All partitions are tried; the best three then run in turn with heddle,
// and the best of those is the peer.
#include <algorithm>

#include "shapes/samples.hpp"

namespace {

using namespace shapes;

Contestant contestant(const Bench& bench, const CpuSet& cpus, const std::string& mode) {
    Command command{{(bench.programs / "composition").string(), mode}, {"HEDDLE_ARBITER=off"}, cpus};
    if (bench.quick) command.argv.emplace_back("--quick");
    return {mode + "/2", 20, [command](double cut_s) {
                const auto limit = std::chrono::duration_cast<std::chrono::nanoseconds>(
                    std::chrono::duration<double>(std::max(cut_s, 5.0)));
                const Outcome outcome = run_together({&command, 1}, limit).front();
                if (outcome.cut) return Sample{cut_s * 1e3, true};
                if (outcome.exit_code != 0)
                    throw heddle::Error(heddle::ErrorCode::kUnavailable,
                                        fmt::format("{}: {}", command.argv.back(), outcome.errors));
                return Sample{std::stod(outcome.output), false};
            }};
}

/// Each way to give three libraries a set each of two CPUs.
std::vector<std::string> partitions(const CpuSet& cpus) {
    const int first = cpus.first();
    CpuSet rest = cpus;
    rest.erase(first);
    const std::string sets[] = {std::to_string(first), std::to_string(rest.first()), cpus.to_list()};
    std::vector<std::string> all{"in_turn"};
    for (const auto& a : sets)
        for (const auto& b : sets)
            for (const auto& c : sets) all.push_back(fmt::format("{}:{}:{}", a, b, c));
    return all;
}

double median_of(const Series& series) {
    return summarize(series.samples).median;
}

void run(const Bench& bench) {
    CpuSet cpus = bench.cpus;
    while (cpus.count() > 2) cpus.erase(cpus.first());
    if (cpus.count() < 2 || access((bench.programs / "composition").c_str(), X_OK) != 0) return;
    std::vector<std::pair<double, std::string>> tried;
    for (const std::string& partition : partitions(cpus)) {
        std::vector<Series> series =
            interleave({contestant(bench, cpus, partition)},
                       {.runs = bench.quick ? 1 : 3, .longest_s = 30, .progress = {}});
        if (series.front().samples.empty())
            std::fprintf(stderr, "%s: %s\n", partition.c_str(), series.front().skipped.c_str());
        else
            tried.emplace_back(median_of(series.front()), partition);
    }
    std::ranges::sort(tried);
    std::vector<Contestant> contestants{contestant(bench, cpus, "heddle"),
                                        contestant(bench, cpus, "uncoordinated")};
    for (size_t i = 0; i < std::min<size_t>(3, tried.size()); ++i)
        contestants.push_back(contestant(bench, cpus, tried[i].second));
    const auto all = bench.measure(contestants);
    const Series* const ours = find(all, "heddle/2");
    if (ours == nullptr) return;
    const Series* best = nullptr;
    for (size_t i = 2; i < all.size(); ++i)
        if (!all[i].samples.empty() && (best == nullptr || median_of(all[i]) < median_of(*best)))
            best = &all[i];
    if (best != nullptr) {
        print("tasks.composition", summarize(ours->samples), "ms", best);
        std::fprintf(stderr, "tasks.composition: the best static partition is %s\n", best->name.c_str());
    }
    if (const Series* const wild = find(all, "uncoordinated/2"))
        print("tasks.composition_vs_uncoordinated", summarize(ours->samples), "ms", wild);
}

}  // namespace

int main(int argc, char** argv) {
    return run_bench(argc, argv, run);
}
