#include "bench/process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "bench/host.hpp"
#include "heddle/error.hpp"

using heddle::CpuSet;
using heddle::bench::Command;
using heddle::bench::Outcome;
using heddle::bench::run_together;
using testing::HasSubstr;
using namespace std::chrono_literals;

namespace {

Command shell(const std::string& script) {
    return {{"sh", "-c", script}, {}, {}};
}

Outcome run(const Command& command, heddle::Nanoseconds limit = 60s) {
    return run_together({&command, 1}, limit).front();
}

/// Gone, or dead and waiting for whoever adopted it.
bool has_ended(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string word;
    char state = 'X';
    stat >> word >> word >> state;
    return state == 'X' || state == 'Z';
}

bool ends_within(pid_t pid, std::chrono::seconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!has_ended(pid)) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(5ms);
    }
    return true;
}

double own_cpu_s() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

}  // namespace

TEST(BenchProcess, KeepsExitCodeAndBothStreams) {
    const Outcome outcome = run(shell("echo out; echo trouble >&2; exit 7"));
    EXPECT_EQ(outcome.exit_code, 7);
    EXPECT_FALSE(outcome.cut);
    EXPECT_EQ(outcome.output, "out\n");
    EXPECT_EQ(outcome.errors, "trouble\n");
    EXPECT_LE(outcome.started, outcome.ended);
}

TEST(BenchProcess, ASignalIsToldAsAShellDoes) {
    EXPECT_EQ(run(shell("kill -TERM $$")).exit_code, 128 + SIGTERM);
}

TEST(BenchProcess, SetsAndRemovesVariables) {
    setenv("BENCH_PROCESS_TEST", "inherited", 1);
    Command command = shell("echo ${BENCH_PROCESS_TEST-none}");
    EXPECT_EQ(run(command).output, "inherited\n");
    command.environment = {"BENCH_PROCESS_TEST"};
    EXPECT_EQ(run(command).output, "none\n");
    command.environment = {"BENCH_PROCESS_TEST=a=b"};
    EXPECT_EQ(run(command).output, "a=b\n");
    unsetenv("BENCH_PROCESS_TEST");
}

TEST(BenchProcess, BindsToTheCpusGiven) {
    Command command = shell("sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status");
    const CpuSet all = CpuSet::parse(run(command).output);
    command.cpus = {all.last()};
    EXPECT_EQ(CpuSet::parse(run(command).output), command.cpus);
}

TEST(BenchProcess, TheyRunAtTheSameTime) {
    const heddle::ScratchFolder folder;
    const std::string fifo = folder.path() + "/fifo";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    // Each end of a fifo opens only once somebody opens the other.
    const std::vector<Command> pair = {shell("echo thread > " + fifo), shell("cat " + fifo)};
    const auto outcomes = run_together(pair, 60s);
    EXPECT_FALSE(outcomes[0].cut);
    EXPECT_EQ(outcomes[1].output, "thread\n");
}

TEST(BenchProcess, WhenTimeIsOverAllItStartedEnds) {
    const Outcome outcome = run(shell("sleep 1000 & echo $!; wait"), 300ms);
    EXPECT_TRUE(outcome.cut);
    EXPECT_EQ(outcome.exit_code, 128 + SIGKILL);
    const pid_t child = std::stoi(outcome.output);
    EXPECT_TRUE(ends_within(child, 10s)) << "process " << child << " is still there";
}

TEST(BenchProcess, DoesNotWaitForOneThatDetachedWithOurPipe) {
    const Outcome outcome = run(shell("setsid sleep 20 & echo $!"), 15s);
    EXPECT_FALSE(outcome.cut);
    kill(std::stoi(outcome.output), SIGKILL);
}

TEST(BenchProcess, KeepsABoundedPartOfWhatIsWritten) {
    const Outcome outcome = run(shell("head -c 1000000 /dev/zero"));
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.output.size(), 65536U);
}

TEST(BenchProcess, StandardInputIsEmpty) {
    EXPECT_EQ(run(shell("cat")).exit_code, 0);
}

TEST(BenchProcess, WaitingCostsNothingWhenAProgramClosedItsStreams) {
    const double before = own_cpu_s();
    EXPECT_FALSE(run(shell("exec >&- 2>&-; sleep 0.5")).cut);
    EXPECT_LT(own_cpu_s() - before, 0.2);
}

TEST(BenchProcess, AProgramThatIsMissingIsNamedAndTheOthersEnd) {
    const std::vector<Command> pair = {shell("sleep 1000"), {{"no-such-program"}, {}, {}}};
    try {
        (void)run_together(pair, 60s);
        FAIL() << "expected an error";
    } catch (const heddle::Error& error) {
        EXPECT_EQ(error.code(), heddle::ErrorCode::kUnavailable);
        EXPECT_THAT(error.what(), HasSubstr("no-such-program"));
    }
}
