// tasks.metg: the smallest tasks of which 2 workers spend half of their time in, on four patterns of
// dependencies, against the best peer (shapes/patterns.hpp); tasks.metg itself is the worst of the four.
#include "shapes/samples.hpp"

namespace {

using namespace shapes;

void run(const Bench& bench) {
    if (bench.cpus.count() < 2) return;
    const std::vector<std::string> peers{"tbb", "libgomp", "libomp"};
    std::vector<Series> worst;
    double worst_ratio = 0;
    for (const char* pattern : {"stencil", "tree", "fft", "all_to_all"}) {
        std::vector<Contestant> contestants{bench.contestant("heddle", pattern, 2)};
        for (const char* peer : {"tbb", "tbb_inline", "libgomp", "libomp"})
            if (bench.has(peer)) contestants.push_back(bench.contestant(peer, pattern, 2));
        auto all = bench.measure(contestants);
        print_cell(fmt::format("tasks.metg_{}", pattern), all, 2, "us", peers, {"tbb_inline"});
        const double ratio = ratio_to_best(all, 2, peers);
        if (ratio <= worst_ratio) continue;
        worst_ratio = ratio;
        worst = std::move(all);
    }
    if (!worst.empty()) print_cell("tasks.metg", worst, 2, "us", peers, {});
}

}  // namespace

int main(int argc, char** argv) {
    return run_bench(argc, argv, run);
}
