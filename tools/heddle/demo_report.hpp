// What `heddle demo` found, as text and as one self-contained HTML page.
#pragma once

#include <string>
#include <vector>

namespace heddle::tool {

struct RunTimes {
    double makespan_s = 0;  ///< from the common start to the end of the last program
    double cpu_s = 0;
    bool cut = false;  ///< it had not ended in time: makespan_s is a lower bound
};

/// Of a scene that was played several times in one way.
class SceneTimes {
  public:
    void add(const RunTimes& run) { runs_.push_back(run); }
    /// Of the run that has as many shorter ones as longer ones; of the longer of two. There is one.
    [[nodiscard]] size_t median_index() const;
    [[nodiscard]] const RunTimes& median() const { return runs_[median_index()]; }
    [[nodiscard]] const std::vector<RunTimes>& runs() const { return runs_; }

  private:
    std::vector<RunTimes> runs_;
};

struct SceneResult {
    std::string title;
    std::vector<std::string> programs;
    SceneTimes alone;          ///< as the operating system runs them
    SceneTimes managed;        ///< under heddle
    std::string svg;           ///< of the median run under heddle
    std::string skipped = {};  ///< why it was not played
};

[[nodiscard]] std::string scene_text(const SceneResult& scene);
[[nodiscard]] std::string report_html(const std::vector<SceneResult>& scenes);

}  // namespace heddle::tool
