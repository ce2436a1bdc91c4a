#include "arbiter/policy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "heddle/error.hpp"

namespace heddle {
namespace {

std::vector<Claim> claims_of(const std::vector<int>& demands) {
    std::vector<Claim> claims;
    for (const int demand : demands) {
        Claim claim;
        claim.client = ClientId{static_cast<uint32_t>(claims.size() + 1)};
        claim.demand = demand;
        claims.push_back(claim);
    }
    return claims;
}

using Portions = std::vector<int>;

TEST(Proportional, WorkedExamplesOfTheSource) {
    EXPECT_EQ(apportion(claims_of({9, 9}), 8), (Portions{4, 4}));
    EXPECT_EQ(apportion(claims_of({8, 2}), 8), (Portions{6, 2}));
    EXPECT_EQ(apportion(claims_of({16, 4, 4}), 8), (Portions{4, 2, 2}));
    EXPECT_EQ(apportion(claims_of({9, 1}), 8), (Portions{7, 1}));
    EXPECT_EQ(apportion(claims_of({3, 7}), 4), (Portions{2, 2})) << "a tie goes to the first";
}

TEST(Proportional, EnoughForAllGivesWhatIsAsked) {
    EXPECT_EQ(apportion(claims_of({3, 0, 5}), 8), (Portions{3, 0, 5}));
    EXPECT_EQ(apportion(claims_of({}), 8), Portions{});
}

TEST(Proportional, FewerCpusThanClientsServesHoldersFirst) {
    auto claims = claims_of({1, 5, 2});
    claims[0].held = 1;
    EXPECT_EQ(apportion(claims, 2), (Portions{1, 1, 0}));
}

TEST(Proportional, WeightsAndMinima) {
    auto claims = claims_of({8, 8});
    claims[0].weight = 3;
    EXPECT_EQ(apportion(claims, 10), (Portions{7, 3}));
    claims[1].min = 6;
    EXPECT_EQ(apportion(claims, 10), (Portions{4, 6}));
    claims[0].min = 8;
    EXPECT_EQ(apportion(claims, 10), (Portions{8, 2})) << "where not all fit, the first come first";
}

/// Fig. 3 step by step. Its remainders are exact fractions here (numerators over one denominator): the
/// figure's doubles break ties such as 6.6 - 6 against 0.6 by rounding errors.
Portions figure_3(const std::vector<int>& loads, int procs) {
    Portions portions;
    std::vector<int> remains(loads.size(), 0);
    int positives = 0, total = 0, assigned = 0;
    for (const int load : loads) {
        positives += load >= 1;
        total += load >= 1 ? load : 0;
        portions.push_back(load >= 1 ? 1 : 0);
    }
    for (size_t i = 0; i < loads.size(); ++i) {
        if (loads[i] >= 2) {
            portions[i] += (loads[i] - 1) * (procs - positives) / (total - positives);
            remains[i] = (loads[i] - 1) * (procs - positives) % (total - positives);
        }
        assigned += portions[i];
    }
    while (assigned < procs) {
        size_t p = 0;
        for (size_t i = 1; i < loads.size(); ++i)
            if (remains[i] > remains[p]) p = i;
        if (remains[p] <= 0) break;
        ++portions[p];
        ++assigned;
        remains[p] = 0;
    }
    return portions;
}

TEST(Proportional, EqualsFigure3Exhaustively) {
    int compared = 0;
    for (int procs = 2; procs <= 16; ++procs)
        for (int a = 0; a <= 12; ++a)
            for (int b = 0; b <= 12; ++b)
                for (int c = 0; c <= 12; ++c) {
                    const std::vector<int> loads{a, b, c};
                    const int active = (a > 0) + (b > 0) + (c > 0);
                    if (a + b + c <= procs || active >= procs)
                        continue;  // cases that the figure leaves to others
                    const Portions ours = apportion(claims_of(loads), procs);
                    EXPECT_EQ(ours, figure_3(loads, procs))
                        << procs << " CPUs, loads " << a << ' ' << b << ' ' << c;
                    ++compared;
                }
    EXPECT_GT(compared, 15000);
}

RC_GTEST_PROP(Policies, TargetsAreWithinDemandAndUseAllThatIsWanted, ()) {
    const auto cpus = *rc::gen::inRange(1, 200);
    const auto policy = make_policy(*rc::gen::element<std::string>("proportional", "owned"));
    std::vector<Claim> claims;
    int owned_left = cpus;
    for (const int demand : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 60))) {
        Claim claim;
        claim.demand = demand;
        claim.min = *rc::gen::inRange(0, demand + 1);
        claim.weight = *rc::gen::inRange(1, 1001);
        claim.held = *rc::gen::inRange(0, 60);
        claim.owned = *rc::gen::inRange(0, owned_left + 1);
        owned_left -= claim.owned;
        claims.push_back(claim);
    }
    const auto targets = policy->targets(claims, cpus);
    RC_ASSERT(targets.size() == claims.size());
    int sum = 0, demand = 0, active = 0;
    for (size_t i = 0; i < claims.size(); ++i) {
        RC_ASSERT(targets[i] >= 0);
        RC_ASSERT(targets[i] <= claims[i].demand);
        if (policy->has_owners()) RC_ASSERT(targets[i] >= std::min(claims[i].owned, claims[i].demand));
        sum += targets[i];
        demand += claims[i].demand;
        active += claims[i].demand > 0;
    }
    RC_ASSERT(sum <= cpus);
    if (!policy->has_owners() && active < cpus) {
        RC_ASSERT(sum == std::min(cpus, demand));
        for (size_t i = 0; i < claims.size(); ++i) RC_ASSERT(targets[i] >= std::min(1, claims[i].demand));
    }
}

TEST(Policies, AnUnknownNameListsThoseThatExist) {
    try {
        (void)make_policy("fair");
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "there is no policy 'fair'; there are: owned, proportional");
    }
}

}  // namespace
}  // namespace heddle
