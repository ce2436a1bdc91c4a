// tasks.independent, chain, cholesky: what an empty task takes from before the first insertion until the wait
// has returned, with 1 worker and with 2 (_2), against the best peer that finds dependencies as tasks come;
// tasks.second_worker: 2 workers over 1 on empty tasks; tasks.efficiency of 2 workers at 2 us a task.
//
// Each sample is a process of its own (shapes/) on so many CPUs, so that no peer's threads spin while another
// is measured; ours and the peers' alternate. OpenMP runs a task at once, in the thread that inserts it,
// where the team has one thread or, of tasks without dependencies, where many wait: there TBB alone is the
// peer. "tbb" gives TBB each task that can run, "tbb_inline" runs continuations on its own
// (shapes/tbb_graph.hpp).
#include "shapes/samples.hpp"

namespace {

using namespace shapes;

void print_second_worker(const std::string& name, const std::vector<Series>& all) {
    const Series* const one = find(all, "heddle/1");
    const Series* const two = find(all, "heddle/2");
    if (one == nullptr || two == nullptr) return;
    std::vector<Sample> ratios;
    for (size_t i = 0; i < std::min(one->samples.size(), two->samples.size()); ++i)
        ratios.push_back({two->samples[i].value / one->samples[i].value, false});
    print(name, summarize(ratios), "x", nullptr);
}

void run(const Bench& bench) {
    const bool two = bench.cpus.count() >= 2;
    for (const char* shape : {"independent", "chain", "cholesky"}) {
        const bool independent = std::strcmp(shape, "independent") == 0;
        std::vector<Contestant> contestants;
        for (const char* engine : {"heddle", "tbb", "tbb_inline", "libgomp", "libomp"}) {
            const bool openmp = std::strncmp(engine, "lib", 3) == 0;
            if (!bench.has(engine) || (independent && std::strcmp(engine, "tbb_inline") == 0)) continue;
            if (!openmp) contestants.push_back(bench.contestant(engine, shape, 1));
            if (two) contestants.push_back(bench.contestant(engine, shape, 2));
        }
        const auto all = bench.measure(contestants);
        const std::string name = fmt::format("tasks.{}", shape);
        print_cell(name, all, 1, "ns", {"tbb"}, {"tbb_inline"});
        if (independent)
            print_cell(fmt::format("{}_2", name), all, 2, "ns", {"tbb"}, {"libgomp", "libomp"});
        else
            print_cell(fmt::format("{}_2", name), all, 2, "ns", {"tbb", "libgomp", "libomp"},
                       {"tbb", "tbb_inline", "libgomp", "libomp"});
        print_second_worker(
            independent ? "tasks.second_worker" : fmt::format("tasks.second_worker_{}", shape), all);
    }
    if (!two) return;
    std::vector<Contestant> contestants{bench.contestant("heddle", "efficiency", 2)};
    if (bench.has("tbb")) contestants.push_back(bench.contestant("tbb", "efficiency", 2));
    const auto all = bench.measure(contestants);
    if (const Series* const ours = find(all, "heddle/2")) {
        print("tasks.efficiency", summarize(ours->samples), "of 1", nullptr);
        if (const Series* const theirs = find(all, "tbb/2"))
            print("tasks.efficiency_vs_tbb", summarize(ours->samples), "of 1", theirs);
    }
}

}  // namespace

int main(int argc, char** argv) {
    return run_bench(argc, argv, run);
}
