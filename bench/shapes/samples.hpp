// What tasks_graph and tasks_metg share: samples of shapes (shapes/), each a process of its own, and figures.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/interleave.hpp"
#include "bench/process.hpp"
#include "bench/statistics.hpp"
#include "figures.hpp"
#include "heddle/error.hpp"
#include "heddle/machine.hpp"

namespace shapes {

using namespace heddle::bench;
using heddle::CpuSet;

struct Bench {
    std::filesystem::path programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    CpuSet cpus = heddle::allowance(heddle::Machine::detect()).usable;
    bool quick = false;

    [[nodiscard]] bool has(const std::string& engine) const {
        return access((programs / fmt::format("shapes_{}", engine)).c_str(), X_OK) == 0;
    }

    [[nodiscard]] Contestant contestant(const std::string& engine, const char* shape, int workers) const {
        Command command{
            {(programs / fmt::format("shapes_{}", engine)).string(), shape, std::to_string(workers)},
            {"HEDDLE_ARBITER=off"},
            {}};
        if (quick) command.argv.emplace_back("--quick");
        // Not the first CPU, where the system's own work is.
        command.cpus = cpus;
        while (command.cpus.count() > workers) command.cpus.erase(command.cpus.first());
        return {fmt::format("{}/{}", engine, workers), 5, [command](double) {
                    const Outcome outcome = run_together({&command, 1}, std::chrono::seconds(30)).front();
                    if (outcome.exit_code != 0)
                        throw heddle::Error(heddle::ErrorCode::kUnavailable,
                                            fmt::format("{}: {}", command.argv.front(), outcome.errors));
                    return Sample{std::stod(outcome.output), false};
                }};
    }

    [[nodiscard]] std::vector<Series> measure(const std::vector<Contestant>& contestants) const {
        auto all = interleave(contestants, {.runs = quick ? 3 : 11, .longest_s = 30, .progress = {}});
        for (const Series& series : all)
            if (!series.skipped.empty())
                std::fprintf(stderr, "%s: %s\n", series.name.c_str(), series.skipped.c_str());
        return all;
    }
};

inline const Series* find(const std::vector<Series>& all, const std::string& name) {
    for (const Series& series : all)
        if (series.name == name && !series.samples.empty()) return &series;
    return nullptr;
}

inline void print(const std::string& name, const Summary& ours, const char* unit, const Series* peer) {
    fmt::print(R"({{"name":"{}","n":{},"median":{:.4g},"mad":{:.3g},"unit":"{}")", name, ours.n, ours.median,
               ours.mad, unit);
    if (peer != nullptr) {
        const Summary theirs = summarize(peer->samples);
        fmt::print(R"(,"peer":"{}","peer_median":{:.4g},"peer_mad":{:.3g})",
                   peer->name.substr(0, peer->name.find('/')), theirs.median, theirs.mad);
    }
    fmt::print("}}\n");
    std::fflush(stdout);
}

inline const Series* best_of(const std::vector<Series>& all, int workers,
                             const std::vector<std::string>& peers) {
    const Series* best = nullptr;
    for (const std::string& peer : peers) {
        const Series* const theirs = find(all, fmt::format("{}/{}", peer, workers));
        if (theirs == nullptr) continue;
        if (best == nullptr || summarize(theirs->samples).median < summarize(best->samples).median)
            best = theirs;
    }
    return best;
}

/// 0 where one of the two is not there.
inline double ratio_to_best(const std::vector<Series>& all, int workers,
                            const std::vector<std::string>& peers) {
    const Series* const ours = find(all, fmt::format("heddle/{}", workers));
    const Series* const best = best_of(all, workers, peers);
    if (ours == nullptr || best == nullptr) return 0;
    return summarize(ours->samples).median / summarize(best->samples).median;
}

/// Ours beside the best of `peers`, and beside each of `all_peers`.
inline void print_cell(const std::string& name, const std::vector<Series>& all, int workers, const char* unit,
                       const std::vector<std::string>& peers, const std::vector<std::string>& all_peers) {
    const Series* const ours = find(all, fmt::format("heddle/{}", workers));
    if (ours == nullptr) return;
    if (const Series* const best = best_of(all, workers, peers))
        print(name, summarize(ours->samples), unit, best);
    for (const std::string& peer : all_peers)
        if (const Series* const theirs = find(all, fmt::format("{}/{}", peer, workers)))
            print(fmt::format("{}_vs_{}", name, peer), summarize(ours->samples), unit, theirs);
}

inline int run_bench(int argc, char** argv, void (*run)(const Bench&)) {
    return run_figures(argc, argv, [run](bool quick) {
        Bench bench;
        bench.quick = quick;
        run(bench);
    });
}

}  // namespace shapes
