// Programs under management, for tests: an arbiter of their own, and `heddle run` on what the build made.
//
// One Managed a test: it starts heddled on a socket in a folder of its own and ends it with the test. Not for
// several threads.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "bench/process.hpp"
#include "support/daemon.hpp"

namespace heddle::test {

using namespace std::chrono_literals;

inline const std::string kPrograms = HEDDLE_BUILD_DIR "/tests/programs/";

class Managed {
  public:
    explicit Managed(const std::string& topology = {}) : daemon_({topology, {"--verbose"}, {}}) {
        EXPECT_TRUE(daemon_.process().running()) << "heddled does not serve: " << daemon_.said();
    }

    [[nodiscard]] std::string socket() const { return daemon_.path(); }
    [[nodiscard]] std::filesystem::path folder() const { return daemon_.folder(); }
    [[nodiscard]] const Daemon& daemon() const { return daemon_; }

    /// The words after `heddle`, with this arbiter.
    [[nodiscard]] bench::Command command(std::vector<std::string> words,
                                         std::vector<std::string> environment = {}) const {
        words.insert(words.begin(), kHeddle);
        environment.push_back("HEDDLE_ARBITER=" + socket());
        return {std::move(words), std::move(environment), {}};
    }
    [[nodiscard]] bench::Command run_command(std::vector<std::string> program) const {
        program.insert(program.begin(), {"run", "--"});
        return command(std::move(program));
    }
    [[nodiscard]] bench::Command shell_command(const std::string& script) const {
        return {{"sh", "-c", script},
                {"HEDDLE_ARBITER=" + socket(), "RUN=" + kHeddle + " run --", "PROGRAMS=" + kPrograms,
                 "HEDDLE=" + kHeddle, "FOLDER=" + daemon_.folder()},
                {}};
    }
    [[nodiscard]] bench::Outcome run(std::vector<std::string> program) const {
        return one(run_command(std::move(program)));
    }
    /// A script that finds `heddle run --` as $RUN, the test programs in $PROGRAMS and a folder as $FOLDER.
    [[nodiscard]] bench::Outcome shell(const std::string& script) const { return one(shell_command(script)); }
    [[nodiscard]] static bench::Outcome one(const bench::Command& command) {
        return bench::run_together({&command, 1}, 60s).front();
    }

  private:
    Daemon daemon_;
};

}  // namespace heddle::test
