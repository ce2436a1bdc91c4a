// What the programs that measure heddle share: --quick, and how a series of values becomes a line of JSON
// (bench/README.md).
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/statistics.hpp"
#include "trace/escape.hpp"

namespace heddle::bench {

/// Where the program lies, and what it runs beside it.
[[nodiscard]] inline std::filesystem::path own_folder() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

/// One value a run.
struct Figure {
    std::string name;
    const char* unit;
    std::vector<double> values;
    double limit = 0;                                    ///< where it depends on the run, else 0
    double peer_median = 0;                              ///< of a peer in the same run, else 0
    std::vector<std::pair<const char*, double>> more{};  ///< for readers; the driver takes no notice
};

inline void print(const Figure& figure) {
    fmt::print(R"({{"name":"{}","n":{},"median":{:.6g},"mad":{:.4g},"unit":"{}")", figure.name,
               figure.values.size(), median(figure.values), median_absolute_deviation(figure.values),
               figure.unit);
    if (figure.limit > 0) fmt::print(R"(,"limit":{:.6g})", figure.limit);
    if (figure.peer_median > 0) fmt::print(R"(,"peer_median":{:.6g})", figure.peer_median);
    for (const auto& [name, value] : figure.more) fmt::print(R"(,"{}":{:.6g})", name, value);
    fmt::print("}}\n");
    std::fflush(stdout);
}

/// A figure that cannot be measured here, and why not.
inline void print_skipped(const char* name, const std::string& why) {
    fmt::print("{{\"name\":\"{}\",\"skipped\":{}}}\n", name, trace::json_string(why));
    std::fflush(stdout);
}

/// Of work that others do with OpenMP in turn with it: threads of OpenMP look for more a while after each
/// region, and are let fall asleep first.
template <class Work>
[[nodiscard]] double milliseconds(const Work& work) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// The program: `run(quick)`. An exception ends it with 1, other arguments than --quick with 2.
template <class Run>
[[nodiscard]] int run_figures(int argc, char** argv, const Run& run) {
    const std::string program = std::filesystem::path(argv[0]).filename();
    const bool quick = argc == 2 && std::strcmp(argv[1], "--quick") == 0;
    if (argc > 1 && !quick) {
        std::fprintf(stderr, "usage: %s [--quick]\n", program.c_str());
        return 2;
    }
    try {
        run(quick);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", program.c_str(), error.what());
        return 1;
    }
    return 0;
}

}  // namespace heddle::bench
