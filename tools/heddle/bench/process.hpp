// Programs started together, watched until the last has ended, and ended when their time is over.
//
// Each program is a session of its own, so that all it started can be ended with it, and dies with the
// caller. Standard input is empty; what a program writes is kept, up to a bound. One thread; nothing is left
// behind when a call returns or throws, except what a program itself detached into another session.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "heddle/cpu_set.hpp"

namespace heddle::bench {

struct Command {
    std::vector<std::string> argv;         ///< a name without a slash is looked up in PATH
    std::vector<std::string> environment;  ///< "NAME=value" sets, "NAME" removes; the rest is inherited
    CpuSet cpus;                           ///< affinity; empty: the caller's
};

struct Outcome {
    int exit_code = 0;  ///< 128 + signal where a signal ended it, as in a shell
    bool cut = false;   ///< it was still running when the time was over
    Time started{};
    Time ended{};
    double cpu_s = 0;  ///< user and system time, its own and its waited-for children's
    std::string output;
    std::string errors;
};

/// Starts all commands and waits until each has ended or `limit` is over; then ends those that still run.
/// Outcomes are in the commands' order. Throws kUnavailable for a program that cannot be started (the others
/// are ended) and kSystem for a system call that failed.
[[nodiscard]] std::vector<Outcome> run_together(std::span<const Command> commands, Nanoseconds limit);

}  // namespace heddle::bench
