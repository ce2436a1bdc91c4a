#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::bench {
namespace {

const Series* find(const std::vector<Series>& all, std::string_view name) {
    const auto found = std::ranges::find(all, name, &Series::name);
    return found == all.end() || found->samples.empty() ? nullptr : &*found;
}

const Series* find_best_peer(const std::vector<Series>& all) {
    const Series* best = nullptr;
    for (const Series& series : all) {
        if (series.name == "heddle" || series.samples.empty()) continue;
        if (best == nullptr || summarize(series.samples).median < summarize(best->samples).median)
            best = &series;
    }
    return best;
}

std::string in_unit(double value, std::string_view unit, int digits = 4) {
    return fmt::format("{:.{}g} {}", value, digits, unit);
}

}  // namespace

std::optional<Result> judge(const Claim& claim, const std::vector<Series>& all) {
    const Series* const ours = find(all, "heddle");
    const Series* const theirs = claim.against == "best" ? find_best_peer(all) : find(all, claim.against);
    if (ours == nullptr || theirs == nullptr) return std::nullopt;
    if (claim.measure == Measure::kExtraTime) {
        const Summary extra = summarize(differences(ours->samples, theirs->samples));
        const double median_ms = extra.median * 1e3;
        return Result{std::string(claim.name), extra.n, median_ms, extra.mad * 1e3, "ms", "limit",
                      median_ms / claim.limit, 1};
    }
    const Summary summary = summarize(ours->samples);
    return Result{std::string(claim.name),
                  summary.n,
                  summary.median,
                  summary.mad,
                  "s",
                  theirs->name,
                  summary.median / summarize(theirs->samples).median,
                  claim.limit};
}

std::vector<std::string> failures(const std::vector<Series>& all) {
    std::vector<std::string> lines;
    for (const Series& series : all)
        if (!series.skipped.empty() && !series.samples.empty())
            lines.push_back(fmt::format("{} failed after {} runs: {}", series.name, series.samples.size(),
                                        series.skipped));
    return lines;
}

nlohmann::ordered_json results_json(const std::vector<Result>& results) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Result& result : results)
        list.push_back({{"name", result.name},
                        {"n", result.n},
                        {"median", result.median},
                        {"mad", result.mad},
                        {"unit", result.unit},
                        {"peer", result.peer},
                        {"ratio", result.ratio}});
    return list;
}

std::string line(const Result& result) {
    std::string text = fmt::format("  {:<34} {:>12} +- {:<10} n {:<4} {:.3f} of {}", result.name,
                                   in_unit(result.median, result.unit), in_unit(result.mad, result.unit, 2),
                                   result.n, result.ratio, result.peer);
    if (result.limit > 0)
        text +=
            fmt::format(" (at most {:g}: {})", result.limit, result.ratio <= result.limit ? "met" : "MISSED");
    return text + "\n";
}

std::string table(const Benchmark& benchmark, const std::vector<Series>& all,
                  const std::vector<Result>& results, double others_share) {
    std::string text = fmt::format("{}: {}\n", benchmark.claims.front().name, benchmark.what);
    for (const Series& series : all) {
        if (!series.samples.empty()) {
            const Summary summary = summarize(series.samples);
            const auto cuts = std::ranges::count_if(series.samples, &Sample::cut);
            text += fmt::format("    {:<8} {:>12} +- {:<10} n {}{}\n", series.name,
                                (summary.at_least ? ">= " : "") + in_unit(summary.median, "s"),
                                in_unit(summary.mad, "s", 2), summary.n,
                                cuts > 0 ? fmt::format(" ({} cut)", cuts) : "");
        }
        if (!series.skipped.empty())
            text += fmt::format("    {:<8} skipped: {}\n", series.name, series.skipped);
    }
    for (const Result& result : results) text += line(result);
    if (others_share > 0.02)
        text +=
            fmt::format("    other programs used {:.0f} % of the machine meanwhile\n", others_share * 100);
    return text;
}

}  // namespace heddle::bench
