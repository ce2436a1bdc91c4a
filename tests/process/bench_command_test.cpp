// heddle bench as a user calls it. Nothing here is timed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/process.hpp"
#include "support/sanitized.hpp"

using heddle::bench::Command;
using heddle::bench::Outcome;
using testing::HasSubstr;

namespace {

const std::string kHeddle = HEDDLE_BUILD_DIR "/bin/heddle";
const std::string kPrograms = HEDDLE_BUILD_DIR "/bench/";

Outcome run(std::vector<std::string> argv) {
    const Command command{std::move(argv), {}, {}};
    return heddle::bench::run_together({&command, 1}, std::chrono::minutes(2)).front();
}

}  // namespace

TEST(BenchCommand, ListsEveryNameOfTheIssue) {
    const Outcome outcome = run({kHeddle, "bench", "--list"});
    EXPECT_EQ(outcome.exit_code, 0);
    for (const char* const name :
         {"oversubscription", "oversubscription_apart", "oversubscription_regions",
          "oversubscription_vs_default", "blocked", "serial", "unequal", "real", "alone", "start", "lend",
          "borrow_fails", "handover", "handover_asleep", "scale"})
        EXPECT_THAT(outcome.output, HasSubstr(std::string("cores.") + name + " "));
}

TEST(BenchCommand, MistakesAreToldInOneLine) {
    for (const auto& argv : std::vector<std::vector<std::string>>{{kHeddle, "bench", "no.such"},
                                                                  {kHeddle, "bench", "--peers", "nobody"},
                                                                  {kHeddle, "bench", "--runs", "0"}}) {
        const Outcome outcome = run(argv);
        EXPECT_EQ(outcome.exit_code, 2) << outcome.errors;
        EXPECT_EQ(outcome.output, "");
        EXPECT_THAT(outcome.errors, HasSubstr("heddle: "));
    }
}

TEST(BenchCommand, MeasuresAPeerAndClaimsNothingWithoutHeddle) {
    const Outcome outcome = run({kHeddle, "bench", "--quick", "--json", "--peers", "os", "cores.start"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(nlohmann::json::parse(outcome.output), nlohmann::json::array());
    EXPECT_EQ(outcome.errors, "") << "no progress where there is no terminal";
}

TEST(BenchCommand, TellsEachFigureOfAProgram) {
    if (heddle::test::kThreadSanitized) GTEST_SKIP() << "skipped: ThreadSanitizer knows 8,128 fibers at most";
    const Outcome outcome = run({kHeddle, "bench", "--quick", "--json", "tasks.pause", "cores.scale"});
    std::vector<std::string> names;
    for (const auto& result : nlohmann::json::parse(outcome.output)) names.push_back(result.at("name"));
    EXPECT_THAT(names, testing::UnorderedElementsAre("tasks.pause", "tasks.pause_64", "tasks.pause_100000",
                                                     "cores.scale", "cores.scale_growth"))
        << outcome.errors;
}

/// On a virtual clock, so that each is met on any machine.
TEST(BenchCommand, EachFigureOfSimulatedDevicesIsToldAndMet) {
    const Outcome outcome =
        run({kHeddle, "bench", "--quick", "devices.heft", "devices.pams", "devices.learned"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    for (const char* name : {"devices.heft", "devices.pams_noisy", "devices.pams_slow", "devices.learned"})
        EXPECT_THAT(outcome.output, HasSubstr(name));
    EXPECT_THAT(outcome.output, testing::Not(HasSubstr("MISSED")));
}

TEST(BenchWorkloads, EachPassesTheGateAndReports) {
    for (const auto& argv : std::vector<std::vector<std::string>>{
             {kPrograms + "barriers", "--rounds", "3"},
             {kPrograms + "phases", "--phases", "2", "--alone-us", "10", "--regions", "2", "--chunk-us", "1"},
             {kPrograms + "spin_barrier", "--rounds", "3", "--threads", "1"}}) {
        std::vector<std::string> gated = argv;
        for (const char* const word : {"--iterations-per-us", "10", "--start-at", "1"})
            gated.emplace_back(word);
        const Outcome outcome = run(gated);
        ASSERT_EQ(outcome.exit_code, 0) << argv[0] << ": " << outcome.errors;
        const auto line = nlohmann::json::parse(outcome.output);
        EXPECT_GE(line["threads"], 1);
        EXPECT_LE(line["start_ns"], line["end_ns"]);
        EXPECT_GE(line["wall_s"], 0);
    }
}

TEST(BenchWorkloads, AWrongOptionIsToldAndEndsTheProgram) {
    for (const char* const value : {"-3", "many", "1e3", ""}) {
        const Outcome outcome = run({kPrograms + "barriers", "--rounds", value});
        EXPECT_EQ(outcome.exit_code, 2) << value;
        EXPECT_THAT(outcome.errors, HasSubstr("--rounds"));
    }
    EXPECT_EQ(run({kPrograms + "phases", "--no-such", "1"}).exit_code, 2);
}
