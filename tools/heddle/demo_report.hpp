// What `heddle demo` found, as text and as one self-contained HTML page.
#pragma once

#include <string>
#include <vector>

namespace heddle::tool {

struct SceneTimes {
    double makespan_s = 0;  ///< from the common start to the end of the last program
    double cpu_s = 0;
    bool cut = false;  ///< it had not ended in time: makespan_s is a lower bound
    std::vector<double> each_s;
};

struct SceneResult {
    std::string title;
    std::vector<std::string> programs;
    SceneTimes alone;    ///< as the operating system runs them
    SceneTimes managed;  ///< under heddle
    std::string svg;
    std::string skipped = {};  ///< why it was not played
};

[[nodiscard]] std::string scene_text(const SceneResult& scene);
[[nodiscard]] std::string report_html(const std::vector<SceneResult>& scenes);

}  // namespace heddle::tool
