#include "bench/interleave.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/error.hpp"

using heddle::bench::Contestant;
using heddle::bench::interleave;
using heddle::bench::Sample;
using heddle::bench::Schedule;
using testing::ElementsAre;
using testing::SizeIs;

namespace {

/// Takes `duration` unless it is cut before, and notes that it ran.
Contestant takes(const std::string& name, double duration, std::string& order, double cut_factor = 5) {
    return {name, cut_factor, [=, &order](double cut_s) {
                order += name;
                return duration > cut_s ? Sample{cut_s, true} : Sample{duration, false};
            }};
}

Schedule rounds(int runs) {
    return {runs, 60, {}};
}

}  // namespace

TEST(Interleave, EachRoundBeginsWithTheNextContestant) {
    std::string order;
    const auto all =
        interleave({takes("A", 1, order), takes("B", 1, order), takes("C", 1, order)}, rounds(4));
    EXPECT_EQ(order, "ABCBCACABABC");
    EXPECT_THAT(all[1].samples, SizeIs(4));
}

TEST(Interleave, CutsWhatTakesManyTimesTheBestMedian) {
    std::string order;
    const auto all = interleave({takes("A", 2, order), takes("B", 1000, order, 20)}, rounds(2));
    EXPECT_TRUE(all[1].samples.at(0).cut);
    EXPECT_DOUBLE_EQ(all[1].samples.at(0).value, 40);
    EXPECT_FALSE(all[0].samples.at(1).cut) << "the best is never measured by one that was cut";
}

TEST(Interleave, TheFirstRunOfAllIsCutByTheLongestTimeAllowed) {
    std::string order;
    const auto all = interleave({takes("A", 1000, order)}, {1, 60, {}});
    EXPECT_TRUE(all[0].samples.at(0).cut);
    EXPECT_DOUBLE_EQ(all[0].samples.at(0).value, 60);
}

TEST(Interleave, FiveCutsAndNothingElseSuffice) {
    std::string order;
    int runs_of_c = 0;
    const Contestant sometimes{"C", 5, [&](double cut_s) {
                                   return runs_of_c++ == 2 ? Sample{1.5, false} : Sample{cut_s, true};
                               }};
    const auto all = interleave({takes("A", 1, order), takes("B", 1000, order), sometimes}, rounds(11));
    EXPECT_THAT(all[0].samples, SizeIs(11));
    EXPECT_THAT(all[1].samples, SizeIs(heddle::bench::kCutsThatSuffice));
    EXPECT_THAT(all[2].samples, SizeIs(11)) << "one that can do better gets all its runs";
}

TEST(Interleave, OneThatThrowsIsSkippedWithItsReason) {
    std::string order;
    const Contestant absent{"B", 5, [&](double) -> Sample {
                                order += "B";
                                throw heddle::Error(heddle::ErrorCode::kUnavailable, "not installed");
                            }};
    const auto all = interleave({takes("A", 1, order), absent}, rounds(3));
    EXPECT_EQ(order, "ABAA");
    EXPECT_EQ(all[1].skipped, "not installed");
    EXPECT_THAT(all[1].samples, SizeIs(0));
    EXPECT_EQ(all[0].skipped, "");
}
