// The table of benchmarks: which programs run together, under which peers, and what is claimed of the result.
//
// Data only. A new benchmark of programs side by side is a row here; a figure that a program of its own
// measures is such a program, bench/cores_*.cpp or tasks_*.cpp, and a row in its table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle::bench {

/// In Job::arguments: the path of a picture made before the first run.
inline constexpr std::string_view kPicture = "@picture";

struct Job {
    /// A workload of bench/, which waits at a common gate and reports when it ended; or, with a slash or of
    /// PATH where `outside`, any program, timed from its start to its end.
    std::string_view program;
    std::vector<std::string_view> arguments;
    int start_ms = 0;  ///< after the common start
    bool outside = false;
};

enum class Measure {
    kRatio,      ///< median under heddle over the peer's median
    kExtraTime,  ///< what heddle adds run by run, in ms, over the limit; the peer is then "limit"
};

struct Claim {
    std::string_view name;
    std::string_view against;  ///< a peer's name, or "best" for whichever is best
    double limit = 0;          ///< of the ratio, or in ms; 0: none was set
    Measure measure = Measure::kRatio;
};

struct Benchmark {
    std::vector<Claim> claims;  ///< the first one's name is the benchmark's
    std::string_view what;
    std::vector<Job> jobs;
    std::vector<std::string_view> peers;  ///< besides heddle
    int runs_factor = 1;                  ///< so many times the usual number of runs
};

/// What a program bench/cores_*.cpp or tasks_*.cpp prints: {"name","n","median","mad","unit"} a line, "limit"
/// where that depends on the run, "peer_median", in the same unit, where it is held against a peer, and
/// "peer" where that is the best of several.
struct Figure {
    std::string_view program;
    std::string_view name;
    double limit =
        0;  ///< in the unit below; 0: the program tells it. Against a peer: of the ratio; 0: none was set
    std::string_view unit;
    std::string_view what;
    std::string_view against = "limit";  ///< or a peer's name, or "best"
    bool more_is_better = false;         ///< the ratio is then the peer's over ours
};

[[nodiscard]] const std::vector<Benchmark>& benchmarks();
[[nodiscard]] const std::vector<Figure>& figures();

}  // namespace heddle::bench
