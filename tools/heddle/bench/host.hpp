// What the benchmarks find around them: programs, CPUs, the speed of a core, DLB, a folder for scratch files.
//
// Made once by `heddle bench` and read-only after that.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/scratch_folder.hpp"
#include "heddle/cpu_set.hpp"

namespace heddle::bench {

/// Held while benchmarks run: two drivers at once would measure each other. Goes with the process.
class OneAtATime {
  public:
    /// Waits for another driver to end, after it called `told` once. Where no lock can be had (a folder for
    /// temporary files that nobody may write) it does not wait.
    explicit OneAtATime(const std::function<void()>& told);
    OneAtATime(const OneAtATime&) = delete;
    OneAtATime& operator=(const OneAtATime&) = delete;
    ~OneAtATime();

  private:
    int fd_;
};

struct Host {
    std::filesystem::path heddle;    ///< this very program
    std::filesystem::path programs;  ///< folder of the workload programs
    CpuSet cpus;                     ///< what the caller may use
    uint64_t iterations_per_us = 0;  ///< of the workloads' arithmetic, measured before the first run
    std::filesystem::path dlb;       ///< where DLB is installed ($DLB_HOME, or by `dlb_run` in PATH), or ""
    std::filesystem::path scratch;
};

/// Throws kUnavailable where the workload programs are not installed.
[[nodiscard]] Host find_host(const ScratchFolder& scratch);

/// Measures iterations_per_us; takes a tenth of a second.
void calibrate(Host& host);

/// A program of PATH, or "".
[[nodiscard]] std::filesystem::path find_in_path(const std::string& program);

}  // namespace heddle::bench
