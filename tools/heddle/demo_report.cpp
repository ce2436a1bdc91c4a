#include "demo_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace heddle::tool {
namespace {

std::string seconds(const RunTimes& times) {
    return fmt::format("{}{:.2f} s", times.cut ? "more than " : "", times.makespan_s);
}

/// "6.42 to 6.75 s; " where it was played more than once.
std::string range(const SceneTimes& times) {
    if (times.runs().size() == 1) return "";
    const auto [least, most] = std::ranges::minmax(times.runs(), {}, &RunTimes::makespan_s);
    return fmt::format("{:.2f} to {}; ", least.makespan_s, seconds(most));
}

std::string line(const SceneTimes& times) {
    return fmt::format("{:>18}  ({}{:.1f} core-seconds)", seconds(times.median()), range(times),
                       times.median().cpu_s);
}

bool faster(const SceneResult& scene) {
    return scene.managed.median().makespan_s < scene.alone.median().makespan_s;
}

std::string ratio(const SceneResult& scene) {
    const RunTimes &alone = scene.alone.median(), &managed = scene.managed.median();
    return fmt::format("{}{:.2f}", alone.cut ? "at least " : "", alone.makespan_s / managed.makespan_s);
}

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ink: #1d2733; --soft: #5d6b7a; --paper: #ffffff; --line: #d8dee6; --good: #1f7a4d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf1; --soft: #9aa7b5; --paper: #14191f; --line: #303a45; --good: #58c48f; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem; margin: 3rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem } h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem }
p { color: var(--soft); margin-top: 0 }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .35rem .6rem; border-bottom: 1px solid var(--line) } th:first-child, td:first-child { text-align: left }
th { color: var(--soft); font-weight: 500 } .good { color: var(--good); font-weight: 600 } svg { width: 100%; height: auto }
)";

}  // namespace

size_t SceneTimes::median_index() const {
    std::vector<size_t> order(runs_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, {}, [this](size_t run) { return runs_[run].makespan_s; });
    return order[order.size() / 2];
}

std::string scene_text(const SceneResult& scene) {
    if (!scene.skipped.empty()) return fmt::format("  skipped: {}\n", scene.skipped);
    return fmt::format(
        "  as the system runs them  {}\n"
        "  under heddle             {}\n"
        "  {} times as fast\n",
        line(scene.alone), line(scene.managed), ratio(scene));
}

std::string report_html(const std::vector<SceneResult>& scenes) {
    std::string rows;
    std::string pictures;
    for (const SceneResult& scene : scenes) {
        if (!scene.skipped.empty()) {
            rows += fmt::format("<tr><td>{}</td><td colspan=\"3\">skipped: {}</td></tr>\n", scene.title,
                                scene.skipped);
            continue;
        }
        rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td{}>{}</td></tr>\n", scene.title,
                            seconds(scene.alone.median()), seconds(scene.managed.median()),
                            faster(scene) ? " class=\"good\"" : "", ratio(scene));
        pictures += fmt::format("<h2>{}</h2>\n<p>Who had which core when, under heddle.</p>\n{}\n",
                                scene.title, scene.svg);
    }
    return fmt::format(R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>heddle: programs that share a machine</title><style>{}</style></head><body>
<h1>Programs that share a machine</h1>
<p>Unmodified programs of Debian, started together: as the operating system runs them, and each under <code>heddle run</code>, in turn. Medians.</p>
<table><thead><tr><th>Programs</th><th>as the system runs them</th><th>under heddle</th><th>times as fast</th></tr></thead>
<tbody>
{}</tbody></table>
{}</body></html>
)",
                       kStyle, rows, pictures);
}

}  // namespace heddle::tool
