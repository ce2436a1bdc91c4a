#include "bench/statistics.hpp"

#include <gtest/gtest.h>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

using heddle::bench::differences;
using heddle::bench::median;
using heddle::bench::median_absolute_deviation;
using heddle::bench::Sample;
using heddle::bench::summarize;

TEST(Statistics, MedianOfOddEvenAndNoValues) {
    EXPECT_EQ(median({3, 1, 2}), 2);
    EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
    EXPECT_EQ(median({7}), 7);
    EXPECT_EQ(median({}), 0);
}

TEST(Statistics, MadIsTheMedianDistanceToTheMedian) {
    EXPECT_EQ(median_absolute_deviation({1, 1, 2, 2, 4, 6, 9}), 1);
    EXPECT_EQ(median_absolute_deviation({5, 5, 5}), 0);
}

TEST(Statistics, OneWildRunMovesNeither) {
    const auto quiet = summarize({{1.0}, {1.1}, {0.9}, {1.0}, {1.0}});
    const auto disturbed = summarize({{1.0}, {1.1}, {0.9}, {1.0}, {50}});
    EXPECT_EQ(quiet.median, disturbed.median);
    EXPECT_LE(disturbed.mad, 0.1 + 1e-9);
    EXPECT_EQ(disturbed.n, 5);
}

TEST(Statistics, ACutRunMakesTheMedianABoundOnlyWhereItReachesIt) {
    EXPECT_FALSE(summarize({{1}, {2}, {20, true}}).at_least);
    EXPECT_TRUE(summarize({{1}, {20, true}, {20, true}}).at_least);
    // Cut early, at a value below the median: the true median may be higher.
    EXPECT_TRUE(summarize({{1, true}, {2}, {3}}).at_least);
    EXPECT_TRUE(summarize({{1}, {20, true}}).at_least) << "the higher of the middle two may be any";
    EXPECT_FALSE(summarize({{1}, {2}, {3}, {20, true}}).at_least);
    EXPECT_FALSE(summarize({}).at_least);
}

TEST(Statistics, DifferencesPairNeighboursInTime) {
    const auto extra = differences({{2}, {5, true}, {9}}, {{1}, {3}});
    ASSERT_EQ(extra.size(), 2U);
    EXPECT_EQ(extra[0].value, 1);
    EXPECT_FALSE(extra[0].cut);
    EXPECT_EQ(extra[1].value, 2);
    EXPECT_TRUE(extra[1].cut);
}

RC_GTEST_PROP(Statistics, HalfOfTheValuesLieOnEachSideOfTheMedian, ()) {
    const auto whole =
        *rc::gen::nonEmpty(rc::gen::container<std::vector<int16_t>>(rc::gen::arbitrary<int16_t>()));
    const std::vector<double> values(whole.begin(), whole.end());
    const double middle = median(values);
    const auto below = std::ranges::count_if(values, [&](double value) { return value < middle; });
    const auto above = std::ranges::count_if(values, [&](double value) { return value > middle; });
    RC_ASSERT(2 * below <= std::ssize(values));
    RC_ASSERT(2 * above <= std::ssize(values));
}
