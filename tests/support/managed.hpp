// Programs under management, for tests: an arbiter of their own, and `heddle run` on what the build made.
//
// One Managed a test: it starts heddled on a socket in a folder of its own and ends it with the test. Not for
// several threads.
#pragma once

#include <fcntl.h>
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
#include "support/temporary_folder.hpp"

namespace heddle::test {

using namespace std::chrono_literals;

inline const std::string kHeddle = HEDDLE_BUILD_DIR "/bin/heddle";
inline const std::string kPrograms = HEDDLE_BUILD_DIR "/tests/programs/";

class Managed {
  public:
    explicit Managed(const std::string& topology = {}) { start(topology); }
    ~Managed() {
        ::kill(daemon_, SIGCONT);
        ::kill(daemon_, SIGKILL);
        ::waitpid(daemon_, nullptr, 0);
    }
    Managed(const Managed&) = delete;
    Managed& operator=(const Managed&) = delete;

    [[nodiscard]] std::string socket() const { return folder_.path() + "/arbiter"; }
    [[nodiscard]] std::filesystem::path folder() const { return folder_.path(); }
    [[nodiscard]] pid_t daemon() const { return daemon_; }
    /// How many lines of the arbiter's log have these words.
    [[nodiscard]] int said(const std::string& words) const {
        std::ifstream log(log_path());
        int count = 0;
        for (std::string line; std::getline(log, line);) count += line.find(words) != std::string::npos;
        return count;
    }

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
                 "HEDDLE=" + kHeddle, "FOLDER=" + folder_.path()},
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
    [[nodiscard]] std::string log_path() const { return folder_.path() + "/log"; }
    void start(const std::string& topology) {
        int ready[2];
        ASSERT_EQ(::pipe(ready), 0);
        const std::string fd = std::to_string(ready[1]);
        daemon_ = ::fork();
        if (daemon_ == 0) {
            ::close(ready[0]);
            if (!topology.empty()) ::setenv("HEDDLE_TOPOLOGY", topology.c_str(), 1);
            const std::string path = socket();
            const int log = ::open(log_path().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
            ::dup2(log, 2);
            ::execl(HEDDLE_BUILD_DIR "/bin/heddled", "heddled", "--verbose", "--socket", path.c_str(),
                    "--ready-fd", fd.c_str(), nullptr);
            ::_exit(127);
        }
        ::close(ready[1]);
        char byte = 0;
        EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "heddled does not serve";
        ::close(ready[0]);
    }

    TemporaryFolder folder_;
    pid_t daemon_ = -1;
};

}  // namespace heddle::test
