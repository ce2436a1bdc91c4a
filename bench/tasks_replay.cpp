// tasks.replay: the tasks of tasks.cholesky, recorded once; what one takes from before the replay until the
// wait has returned, with 1 worker and with 2 (_2), against oneTBB's flow graph built once
// (shapes/tbb_flow.cpp).
#include "shapes/samples.hpp"

namespace {

using namespace shapes;

void run(const Bench& bench) {
    std::vector<Contestant> contestants;
    for (const int workers : {1, 2})
        for (const char* engine : {"heddle", "tbb_flow"})
            if (bench.cpus.count() >= workers && bench.has(engine))
                contestants.push_back(bench.contestant(engine, "replay", workers));
    const auto all = bench.measure(contestants);
    for (const int workers : {1, 2}) {
        const std::string name = workers == 1 ? "tasks.replay" : "tasks.replay_2";
        if (const Series* const ours = find(all, fmt::format("heddle/{}", workers)))
            print(name, summarize(ours->samples), "ns", nullptr);
        print_cell(name, all, workers, "ns", {}, {"tbb_flow"});
    }
}

}  // namespace

int main(int argc, char** argv) {
    return run_bench(argc, argv, run);
}
