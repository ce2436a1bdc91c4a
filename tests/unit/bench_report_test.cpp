#include "bench/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "bench/figure_programs.hpp"
#include "heddle/error.hpp"

using heddle::bench::Claim;
using heddle::bench::judge;
using heddle::bench::Measure;
using heddle::bench::read_figures;
using heddle::bench::Series;
using testing::HasSubstr;

namespace {

const std::vector<Series> kMeasured = {{"heddle", {{1.0}, {1.1}, {1.05}}, ""},
                                       {"passive", {{1.2}, {1.0}, {1.1}}, ""},
                                       {"dlb", {}, "not installed"},
                                       {"os", {{21, true}, {21, true}, {21, true}}, ""}};

}  // namespace

TEST(BenchReport, BestIsThePeerWithTheLowestMedian) {
    const auto result = judge({"cores.x", "best", 1.05}, kMeasured);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->peer, "passive");
    EXPECT_EQ(result->n, 3);
    EXPECT_DOUBLE_EQ(result->median, 1.05);
    EXPECT_NEAR(result->mad, 0.05, 1e-9);
    EXPECT_NEAR(result->ratio, 1.05 / 1.1, 1e-9);
}

TEST(BenchReport, ANamedPeerIsTakenEvenWhereItWasCut) {
    const auto result = judge({"cores.x_vs_default", "os", 0.1}, kMeasured);
    ASSERT_TRUE(result);
    EXPECT_DOUBLE_EQ(result->ratio, 0.05);
}

TEST(BenchReport, NothingIsClaimedWithoutAPeerOrWithoutHeddle) {
    EXPECT_FALSE(judge({"cores.x", "dlb", 1.05}, kMeasured));
    EXPECT_FALSE(judge({"cores.x", "best", 1.05}, {{"os", {{1.0}}, ""}}));
    EXPECT_FALSE(judge({"cores.x", "best", 1.05}, {{"heddle", {{1.0}}, ""}}));
}

TEST(BenchReport, WhoFailedAfterSomeRunsIsTold) {
    EXPECT_EQ(heddle::bench::failures(kMeasured), std::vector<std::string>{})
        << "who could not be measured at all is skipped";
    EXPECT_EQ(heddle::bench::failures({{"heddle", {{1.0}, {1.1}}, "it ended with 1"}, {"os", {{1.0}}, ""}}),
              std::vector<std::string>{"heddle failed after 2 runs: it ended with 1"});
}

TEST(BenchReport, ExtraTimeIsInMillisecondsAndAgainstTheLimit) {
    const std::vector<Series> all = {{"heddle", {{0.0031}, {0.0052}, {0.0033}}, ""},
                                     {"os", {{0.0011}, {0.0031}, {0.0012}}, ""}};
    const auto result = judge({"cores.start", "os", 4.0, Measure::kExtraTime}, all);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->peer, "limit");
    EXPECT_EQ(result->unit, "ms");
    EXPECT_NEAR(result->median, 2.1, 1e-9);
    EXPECT_NEAR(result->ratio, 2.1 / 4, 1e-9);
}

TEST(BenchReport, JsonHasExactlyTheKeysOfTheContract) {
    const auto json = heddle::bench::results_json({*judge({"cores.x", "best", 1.05}, kMeasured)});
    ASSERT_EQ(json.size(), 1U);
    std::set<std::string> keys;
    for (const auto& [key, value] : json[0].items()) keys.insert(key);
    EXPECT_EQ(keys, (std::set<std::string>{"name", "n", "median", "mad", "unit", "peer", "ratio"}));
    EXPECT_EQ(heddle::bench::results_json({}).dump(), "[]");
}

TEST(BenchReport, TheTableSaysWhatWasCutSkippedAndMissed) {
    heddle::bench::Benchmark benchmark;
    benchmark.claims = {{"cores.x", "best", 0.9}};
    benchmark.what = "two programs";
    const auto text = table(benchmark, kMeasured, {*judge(benchmark.claims[0], kMeasured)}, 0.25);
    EXPECT_THAT(text, HasSubstr(">= 21 s"));
    EXPECT_THAT(text, HasSubstr("(3 cut)"));
    EXPECT_THAT(text, HasSubstr("skipped: not installed"));
    EXPECT_THAT(text, HasSubstr("MISSED"));
    EXPECT_THAT(text, HasSubstr("other programs used 25 %"));
}

TEST(BenchReport, NoNameIsClaimedTwice) {
    std::set<std::string_view> names;
    for (const auto& benchmark : heddle::bench::benchmarks())
        for (const auto& claim : benchmark.claims) EXPECT_TRUE(names.insert(claim.name).second) << claim.name;
    for (const auto& figure : heddle::bench::figures())
        EXPECT_TRUE(names.insert(figure.name).second) << figure.name;
}

TEST(FigurePrograms, TheLimitIsTheTablesOrElseTheLines) {
    const auto [results, complaints, skipped] =
        read_figures(R"({"name":"cores.lend","n":21,"median":30,"mad":1,"unit":"ns"})"
                     "\n"
                     R"({"name":"cores.handover_asleep","n":21,"median":6,"mad":1,"unit":"us","limit":12})"
                     "\n"
                     R"({"name":"cores.not_in_the_table","n":1,"median":1,"mad":0,"unit":"s"})");
    ASSERT_EQ(results.size(), 2U);
    EXPECT_DOUBLE_EQ(results[0].ratio, 0.5);
    EXPECT_DOUBLE_EQ(results[1].ratio, 0.5);
    EXPECT_EQ(results[1].peer, "limit");
    EXPECT_TRUE(complaints.empty());
}

TEST(FigurePrograms, OneThatCannotBeMeasuredHereSaysWhy) {
    const auto [results, complaints, skipped] =
        read_figures(R"({"name":"streams.vs_fastflow","skipped":"there is no FastFlow"})"
                     "\n"
                     R"({"name":"cores.not_in_the_table","skipped":"nobody asks"})");
    EXPECT_TRUE(results.empty());
    EXPECT_TRUE(complaints.empty());
    EXPECT_EQ(skipped, std::vector<std::string>{"streams.vs_fastflow: there is no FastFlow"});
}

TEST(FigurePrograms, OneWithAPeerIsHeldAgainstWhatThatTook) {
    const auto [results, complaints, skipped] = read_figures(
        R"({"name":"tasks.switch_vs_boost","n":31,"median":15,"mad":1,"unit":"ns","peer_median":60})");
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(results[0].peer, "boost");
    EXPECT_DOUBLE_EQ(results[0].ratio, 0.25);
}

TEST(FigurePrograms, OneAgainstTheBestNamesIt) {
    const auto [results, complaints, skipped] = read_figures(
        R"({"name":"tasks.chain","n":15,"median":60,"mad":1,"unit":"ns","peer":"tbb","peer_median":120})");
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(results[0].peer, "tbb");
    EXPECT_DOUBLE_EQ(results[0].ratio, 0.5);
    EXPECT_DOUBLE_EQ(results[0].limit, 0.6);
}

TEST(FigurePrograms, WhereMoreIsBetterTheRatioIsTurnedRound) {
    const auto [results, complaints, skipped] =
        read_figures(R"({"name":"tasks.efficiency","n":15,"median":0.96,"mad":0.01,"unit":"of 1"})");
    ASSERT_EQ(results.size(), 1U);
    EXPECT_DOUBLE_EQ(results[0].ratio, 0.8 / 0.96);
}

TEST(FigurePrograms, RefusesALineThatIsNoFigure) {
    for (const char* const line :
         {"30 ns", "{}", R"({"name":"cores.lend","n":21,"median":30,"mad":1,"unit":"us"})",
          R"({"name":"cores.lend","n":21,"median":"fast","mad":1,"unit":"ns"})",
          R"({"name":"cores.handover_asleep","n":21,"median":6,"mad":1,"unit":"us"})",
          R"({"name":"tasks.switch_vs_boost","n":31,"median":15,"mad":1,"unit":"ns"})",
          R"({"name":"tasks.chain","n":15,"median":60,"mad":1,"unit":"ns","peer_median":120})"})
        EXPECT_THROW((void)read_figures(line), heddle::Error) << line;
}
