// What the benchmarks find around them: programs, CPUs, the speed of a core, DLB, a folder for scratch files.
//
// Made once by `heddle bench` and read-only after that.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/descriptor.hpp"
#include "base/temporary_folder.hpp"
#include "heddle/cpu_set.hpp"

namespace heddle::bench {

/// Where the benchmarks write, in the folder for temporary files; or with a name that begins with `stem`. It
/// goes even where this process is killed: a program that sleeps beside it takes it away then.
class ScratchFolder : public TemporaryFolder {
  public:
    /// Throws kSystem.
    explicit ScratchFolder(const std::string& stem = std::filesystem::temp_directory_path() /
                                                     "heddle-bench-");
    ~ScratchFolder();

  private:
    Descriptor alive_;  // closed when this process ends, however it does
    pid_t remover_ = -1;
};

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
