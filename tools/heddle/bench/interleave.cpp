#include "interleave.hpp"

#include <algorithm>

#include "heddle/error.hpp"

namespace heddle::bench {
namespace {

double best_median(const std::vector<Series>& all, double otherwise) {
    double best = otherwise;
    for (const Series& series : all) {
        const Summary summary = summarize(series.samples);
        if (summary.n > 0 && !summary.at_least) best = std::min(best, summary.median);
    }
    return best;
}

bool only_cuts(const Series& series) {
    return std::ssize(series.samples) >= kCutsThatSuffice &&
           std::ranges::all_of(series.samples, &Sample::cut);
}

}  // namespace

std::vector<Series> interleave(const std::vector<Contestant>& contestants, const Schedule& schedule) {
    std::vector<Series> all;
    for (const Contestant& contestant : contestants) all.push_back({contestant.name, {}, {}});
    const size_t count = contestants.size();
    for (int round = 0; round < schedule.runs; ++round) {
        for (size_t turn = 0; turn < count; ++turn) {
            const size_t who = (turn + static_cast<size_t>(round)) % count;
            const Contestant& contestant = contestants[who];
            Series& series = all[who];
            if (!series.skipped.empty() || only_cuts(series)) continue;
            if (schedule.progress) schedule.progress(contestant.name, round);
            const double best = best_median(all, schedule.longest_s);
            try {
                series.samples.push_back(
                    contestant.run(std::min(schedule.longest_s, best * contestant.cut_factor)));
            } catch (const Error& error) {
                series.skipped = error.what();
            }
        }
    }
    return all;
}

}  // namespace heddle::bench
