// devices.heft, .pams, .pams_slow: the makespan of 64 tasks on two simulated devices over the fractional
// bound, a seed a value; devices.pams_noisy: of pams over that of heft where estimates are wrong by up to
// half; devices.learned: of heft's second run without estimates over one that knows the costs. On the virtual
// clock: how busy the machine is does not matter. Limits are those of the means.
#include <numeric>

#include "base/temporary_folder.hpp"
#include "devices_mix.hpp"
#include "figures.hpp"

namespace {

using namespace heddle::bench;

double mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void run(bool quick) {
    const unsigned seeds = quick ? 20 : 200;
    constexpr size_t kTasks = 64;
    std::vector<double> fcfs, heft, pams, pams_slow, noisy_heft, noisy_pams;
    for (unsigned seed = 0; seed < seeds; ++seed) {
        const std::vector<MixCost> mix = unequal_mix(seed, kTasks), wrong = noisy(mix, seed);
        const std::vector<MixCost> slow = slow_mix(seed, kTasks);
        const double bound = fractional_bound(mix);
        fcfs.push_back(makespan("fcfs", mix, mix) / bound);
        heft.push_back(makespan("heft", mix, mix) / bound);
        pams.push_back(makespan("pams", mix, mix) / bound);
        noisy_heft.push_back(makespan("heft", mix, wrong) / bound);
        noisy_pams.push_back(makespan("pams", mix, wrong) / bound);
        pams_slow.push_back(makespan("pams", slow, slow) / fractional_bound(slow));
    }
    std::vector<double> first, learned;
    for (unsigned seed = 0; seed < seeds; ++seed) {
        const heddle::TemporaryFolder folder(heddle::TemporaryFolder::place() + "/heddle-bench-");
        const std::string file = folder.path() + "/costs";
        const std::vector<MixCost> kinds = unequal_mix(seed, 8);
        const double known = learned_makespan("heft", kinds, true, file);
        first.push_back(learned_makespan("heft", kinds, false, file) / known);
        learned.push_back(learned_makespan("heft", kinds, false, file) / known);
    }
    print({.name = "devices.learned",
           .unit = "of known",
           .values = {mean(learned)},
           .limit = 1.10,
           .more = {{"first_run", mean(first)}}});
    // Figures of the issue are means, so one value each.
    print({.name = "devices.heft",
           .unit = "of bound",
           .values = {mean(heft)},
           .limit = 1.10,
           .more = {{"fcfs", mean(fcfs)}}});
    print({.name = "devices.pams", .unit = "of bound", .values = {mean(pams)}, .limit = 1.10});
    print({.name = "devices.pams_noisy",
           .unit = "of bound",
           .values = {mean(noisy_pams)},
           .limit = 1.05 * mean(noisy_heft),
           .more = {{"heft", mean(noisy_heft)}}});
    print({.name = "devices.pams_slow", .unit = "of bound", .values = {mean(pams_slow)}, .limit = 1.10});
}

}  // namespace

int main(int argc, char** argv) {
    return run_figures(argc, argv, run);
}
