// Unmodified programs follow their grant: libgomp, libomp and oneTBB, each by its own means.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "support/managed.hpp"
#include "support/on_cpus.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle::test {
namespace {

using bench::Outcome;
using testing::HasSubstr;

bool there(const std::string& program) {
    return std::filesystem::exists(kPrograms + program);
}

class OpenMp : public testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        if (!there(GetParam())) GTEST_SKIP() << GetParam() << " was not built: its runtime is missing";
        if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "needs two CPUs";
    }
    /// `regions` under --max 1, so that its grant is one CPU.
    [[nodiscard]] std::string squeezed(const std::vector<std::string>& arguments,
                                       const std::vector<std::string>& environment = {}) const {
        std::vector<std::string> words{"run", "--max", "1", "--", kPrograms + GetParam()};
        words.insert(words.end(), arguments.begin(), arguments.end());
        auto all = environment;
        all.emplace_back("OMP_DYNAMIC=false");
        const Outcome outcome = Managed::one(managed_.command(words, all));
        EXPECT_EQ(outcome.errors, "");
        return outcome.output;
    }
    Managed managed_;
};

TEST_P(OpenMp, AloneItHasAllOfTheMachine) {
    const Outcome outcome = managed_.run({kPrograms + GetParam(), "0.1"});
    EXPECT_EQ(outcome.output, Managed::one({{kPrograms + GetParam(), "0.1"}, {}, {}}).output);
}

TEST_P(OpenMp, RegionsTakeTheNumberOfThreadsGranted) {
    EXPECT_THAT(squeezed({"0.1"}, {"OMP_NUM_THREADS=2"}),
                testing::MatchesRegex("max 2 then 2 procs .* team 1\n"));
    EXPECT_THAT(squeezed({"0.1", "set", "3"}), testing::MatchesRegex("max 3 then 3 procs .* team 1\n"));
}

TEST_P(OpenMp, ExplicitNumberIsLeftAlone) {
    EXPECT_THAT(squeezed({"0.1", "clause", "2"}), HasSubstr("team 2\n"));
}

TEST_P(OpenMp, ThreadLimitHolds) {
    const Outcome outcome = Managed::one(managed_.command({"run", "--", kPrograms + GetParam(), "0.1"},
                                                          {"OMP_THREAD_LIMIT=1", "OMP_NUM_THREADS=2"}));
    EXPECT_THAT(outcome.output, HasSubstr("team 1\n"));
}

TEST_P(OpenMp, ForkedChildRegistersWhenItBecomesParallel) {
    EXPECT_THAT(squeezed({"0.1", "fork"}, {"OMP_NUM_THREADS=2"}), HasSubstr("team 1\n"));
}

TEST_P(OpenMp, TwoProgramsShareTheMachine) {
    const test::OnCpus two(2);
    const std::vector<bench::Command> both(2, managed_.run_command({kPrograms + GetParam(), "1"}));
    for (const Outcome& outcome : bench::run_together(both, std::chrono::seconds(60)))
        EXPECT_THAT(outcome.output, HasSubstr("team 1")) << outcome.output;
}

// The team that makes libgomp wait politely sleeps, and is none of the program's threads.
/// Alone, its workers have run; they sleep without being announced.
TEST_P(OpenMp, WaitingBetweenRegionsLeavesTheDemandAlone) {
    for (const std::string most : {"--max 1", ""}) {
        const Outcome outcome = managed_.shell("program=${PROGRAMS}" + std::string(GetParam()) + R"(
            export OMP_NUM_THREADS=2 KMP_BLOCKTIME=0
            $HEDDLE run )" + most + R"( -- $program 0.3 serial >$FOLDER/out &
            until grep -q serial $FOLDER/out; do sleep 0.01; kill -0 $! || exit 1; done
            sleep 0.1
            $HEDDLE status --json
            wait; rm $FOLDER/out)");
        const auto status = nlohmann::json::parse(outcome.output);
        ASSERT_EQ(status["clients"].size(), 1U);
        EXPECT_EQ(status["clients"][0]["demand"], 1) << most;
    }
}

INSTANTIATE_TEST_SUITE_P(Runtimes, OpenMp,
                         testing::Values("regions", "regions_libomp", "regions_gcc_on_libomp",
                                         "regions_gcc_beside_libomp", "regions_fortran_on_libomp"),
                         [](const auto& program) { return std::string(program.param); });

TEST(RunRuntimes, ThreadprivateDataLasts) {
    if (!there("threadprivate")) GTEST_SKIP() << "libgomp is missing";
    const Managed managed;
    for (const char* max : {"0", "1"}) {
        const Outcome outcome = Managed::one(
            managed.command({"run", "--max", max, "--", kPrograms + "threadprivate"}, {"OMP_NUM_THREADS=2"}));
        EXPECT_EQ(outcome.output, "threads 2 lost 0\n") << "--max " << max << outcome.errors;
    }
}

TEST(RunRuntimes, TbbIsLimitedByItsGlobalControl) {
    if (!there("loops")) GTEST_SKIP() << "oneTBB is missing";
    // With those CPUs that this process may use, and as many as four.
    const int cpus = std::max(4, thread_affinity().last() + 1);
    const Managed managed(fmt::format("core:{} pu:1", cpus));
    const auto most = [](const bench::Command& command) {
        const Outcome outcome = Managed::one(command);
        EXPECT_EQ(outcome.errors, "");
        std::vector<int> seen;
        std::istringstream words(outcome.output);
        int number = 0;
        for (std::string word; words >> word;)
            if (word == "most" && words >> number) seen.push_back(number);
        EXPECT_FALSE(seen.empty()) << outcome.output;
        // The later half: the limit comes a moment after oneTBB does.
        return seen.empty()
                   ? -1
                   : *std::max_element(seen.begin() + static_cast<long>(seen.size() / 2), seen.end());
    };
    // Its own limit is above the machine, so that its threads tell the limits apart, on two CPUs as well.
    const std::vector<std::string> six{kPrograms + "loops", "1", "6", "each"};
    EXPECT_GE(most({six, {}, {}}), 3) << "without a limit of ours";
    // One thread more than CPUs: it shows whether there is work for another.
    EXPECT_LE(most(managed.command({"run", "--max", "1", "--", six[0], six[1], six[2], six[3]})), 2);
    EXPECT_EQ(most(managed.run_command({kPrograms + "loops", "0.2", "1"})), 1)
        << "the program's own limit holds";
}

TEST(RunRuntimes, SpinningGangsTakeTurns) {
    const std::string program = HEDDLE_BUILD_DIR "/bench/spin_barrier";
    const test::OnCpus two(2);
    if (!two.enough()) GTEST_SKIP() << "needs two CPUs";
    const Managed managed;
    const std::vector<std::string> words{program, "--rounds", "20000"};
    double alone_s = 0;
    for (int i = 0; i < 2; ++i) {
        const Outcome alone = Managed::one({words, {}, {}});
        alone_s += std::chrono::duration<double>(alone.ended - alone.started).count();
    }
    const std::vector<bench::Command> both(2, managed.run_command(words));
    const auto outcomes = bench::run_together(both, std::chrono::seconds(120));
    double together_s = 0;
    for (const Outcome& outcome : outcomes) {
        EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
        together_s =
            std::max(together_s, std::chrono::duration<double>(outcome.ended - outcome.started).count());
    }
    // 40 to 170 times longer as the system runs them; heddle bench has the exact figure.
    EXPECT_LT(together_s, 4 * alone_s);
}

/// What comes in the turn of others waits for its own before its first instruction, and has it.
TEST(RunRuntimes, AProgramThatStartsBesideASpinningGangHasItsTurn) {
    const test::OnCpus two(2);
    if (!two.enough()) GTEST_SKIP() << "needs two CPUs";
    const Managed managed;
    const Outcome outcome = managed.shell("$RUN " HEDDLE_BUILD_DIR R"(/bench/spin_barrier --rounds 100000000 &
        gang=$!
        for i in 1 2 3 4; do
            sleep 0.2
            $RUN ${PROGRAMS}plain exit 3
            echo $?
        done
        kill $gang)");
    EXPECT_FALSE(outcome.cut);
    EXPECT_EQ(outcome.output, "3\n3\n3\n3\n") << outcome.errors;
}

TEST(RunRuntimes, EachWheelKeepsItsLibgomp) {
    if (!there("wheels")) GTEST_SKIP() << "libgomp is missing";
    const Managed managed;
    const bench::Command bare{{kPrograms + "wheels", kPrograms + "."}, {"OMP_DYNAMIC=false"}, {}};
    EXPECT_EQ(Managed::one(bare).output, "numbers 3 2 3 teams 3 2 3\n");
    const Outcome one =
        Managed::one(managed.command({"run", "--max", "1", "--", kPrograms + "wheels", kPrograms + "."}));
    EXPECT_EQ(one.output, "numbers 3 2 3 teams 1 1 1\n") << one.errors;
}

TEST(RunRuntimes, TenLibgompsAreEachToldApart) {
    if (!there("wheels")) GTEST_SKIP() << "libgomp is missing";
    std::string expected = "numbers 3 2 3 teams 1 1 1\n";
    for (char letter = 'a'; letter <= 'h'; ++letter)
        expected += fmt::format("wheel_{}.so number {} team 1\n", letter, 2 + letter % 2);
    const Managed managed;
    const Outcome many = Managed::one(managed.command(
        {"run", "--max", "1", "--", kPrograms + "wheels", kPrograms + ".", "many"}, {"OMP_DYNAMIC=false"}));
    EXPECT_EQ(many.output, expected) << many.errors;
}

TEST(RunRuntimes, NumpyOnOpenBlasComputesTheSame) {
    const std::string script =
        "import numpy; numpy.random.seed(1); a = numpy.random.rand(300, 300); print(round(float((a @ "
        "a).sum()), 3))";
    const Outcome bare = Managed::one({{"/usr/bin/python3", "-c", script}, {}, {}});
    if (bare.exit_code != 0) GTEST_SKIP() << "python3-numpy is not installed";
    const Managed managed;
    const std::vector<bench::Command> both(2, managed.run_command({"/usr/bin/python3", "-c", script}));
    for (const Outcome& outcome : bench::run_together(both, std::chrono::seconds(60)))
        EXPECT_EQ(outcome.output, bare.output) << outcome.errors;
}

TEST(OpenMpTools, OneThatIsPreloadedIsAsked) {
    if (!there("regions_libomp")) GTEST_SKIP() << "libomp is missing";
    const Managed managed;
    const Outcome outcome =
        managed.shell("LD_PRELOAD=${PROGRAMS}ompt_tool.so $RUN ${PROGRAMS}regions_libomp 0.1");
    EXPECT_THAT(outcome.output, testing::StartsWith("asked\nmax ")) << outcome.errors;
}

/// Which waits politely beside another program by a team that is parked.
TEST(OpenMpThreads, NoneIsMadeForAProgramThatUsesOne) {
    if (!there("regions")) GTEST_SKIP() << "libgomp is missing";
    const Managed managed;
    const Outcome outcome = managed.shell(
        "$RUN ${PROGRAMS}plain spin 1.5 & OMP_NUM_THREADS=1 $RUN ${PROGRAMS}regions 1 >/dev/null &\n"
        "sleep 0.7; ls /proc/$!/task | wc -l; wait");
    EXPECT_EQ(outcome.output, "2\n") << "its own and our helper; " << outcome.errors;
}

}  // namespace
}  // namespace heddle::test
