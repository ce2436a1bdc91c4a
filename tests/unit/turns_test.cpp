// Turns of gangs, and how long anybody waits for the next one.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/arbiter_fixture.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;
using test::ArbiterTest;

/// Lets the arbiter's deadlines come for so long, and sums up what `seen` finds after each.
template <class Seen>
void pass(Nanoseconds time, Time& now, Arbiter& arbiter, Seen seen) {
    for (const Time end = now + time; now < end;) {
        const auto deadline = arbiter.next_deadline();
        ASSERT_TRUE(deadline) << "somebody waits for a turn";
        now = std::max(now + 1us, *deadline);
        arbiter.tick(now);
        seen();
    }
}

TEST_F(ArbiterTest, GangsTakeTurnsWithAllTheirThreads) {
    start("core:2 pu:1");
    const ClientId a = join(2);
    const ClientId b = join(2);
    arbiter_->needs_together(a, {.spinning = 2}, now_);
    arbiter_->needs_together(b, {.spinning = 2}, now_);
    settle();
    int turns = 0;
    ClientId last;
    pass(1s, now_, *arbiter_, [&] {
        settle();
        ASSERT_EQ(held(a) + held(b), 2);
        ASSERT_NE(held(a), 1) << "a gang runs as a whole";
        const ClientId runs = held(a) == 2 ? a : b;
        ASSERT_TRUE(published_[runs == a ? b : a].parked);
        ASSERT_FALSE(published_[runs].parked);
        turns += runs != last;
        last = runs;
    });
    EXPECT_NEAR(turns, 50, 3);
    arbiter_->needs_together(a, {}, now_);
    arbiter_->needs_together(b, {}, now_);
    settle();
    EXPECT_EQ(held(a), 1);
    EXPECT_EQ(held(b), 1);
    EXPECT_FALSE(published_[a].parked || published_[b].parked);
}

TEST_F(ArbiterTest, RegionsThatMeetOftenTakeTurnsWhereEachFillsTheMachine) {
    start("core:2 pu:1");
    const ClientId runs = join(2);
    arbiter_->needs_together(runs, {.meeting = 2}, now_);
    settle();
    EXPECT_FALSE(published_[runs].has_turn) << "it is alone";
    const ClientId comes = join(1);
    settle();
    EXPECT_EQ(held(runs), 1) << "a CPU would be idle in the other's turn";
    EXPECT_EQ(held(comes), 1);
    show(comes, 2, true);
    settle();
    ASSERT_EQ(held(runs) + held(comes), 2);
    ASSERT_NE(held(runs), 1);
    const ClientId first = held(runs) == 2 ? runs : comes;
    const ClientId second = first == runs ? comes : runs;
    EXPECT_TRUE(published_[first].has_turn && !published_[first].parked);
    EXPECT_TRUE(published_[second].parked && !published_[second].has_turn);
    pass(21ms, now_, *arbiter_, [&] { settle(); });
    EXPECT_EQ(held(second), 2);
    EXPECT_TRUE(published_[first].parked && published_[second].has_turn);
    arbiter_->needs_together(runs, {}, now_);
    settle();
    for (const ClientId id : {runs, comes}) {
        EXPECT_EQ(held(id), 1);
        EXPECT_FALSE(published_[id].parked || published_[id].has_turn);
    }
}

TEST_F(ArbiterTest, TurnsGoByWeightAndFillTheMachine) {
    start("core:4 pu:1");
    const ClientId heavy = join(4, {}, 3);
    const ClientId gang = join(3);
    const ClientId small = join(1);
    arbiter_->needs_together(gang, {.spinning = 3}, now_);
    settle();
    std::map<ClientId, int> sum;
    int looks = 0;
    pass(4s, now_, *arbiter_, [&] {
        settle();
        ++looks;
        for (const ClientId id : {heavy, gang, small}) sum[id] += held(id);
        ASSERT_TRUE(held(gang) == 0 || held(gang) >= 3) << held(gang);
    });
    EXPECT_NEAR(sum[heavy] + sum[gang] + sum[small], 4 * looks, looks / 4) << "CPUs lie idle";
    EXPECT_GT(sum[heavy], sum[gang]);
    EXPECT_GT(sum[gang], 0);
    EXPECT_GT(sum[small], 0);
}

TEST_F(ArbiterTest, AGangThatFitsIsLeftAlone) {
    start("core:4 pu:1");
    const ClientId gang = join(2);
    const ClientId other = join(2);
    arbiter_->needs_together(gang, {.spinning = 2}, now_);
    settle();
    EXPECT_EQ(held(gang), 2);
    EXPECT_EQ(held(other), 2);
    EXPECT_FALSE(arbiter_->next_deadline());
}

class LongestWait : public ArbiterTest {
  protected:
    static constexpr int kMostAhead = 8;  // as turns.cpp and docs/ARBITER.md say

    /// A program that needs two CPUs at once, on a machine of two: it runs only in its own turn.
    ClientId join_gang(int weight) {
        const ClientId gang = join(2, {}, weight);
        arbiter_->needs_together(gang, {.spinning = 2}, now_);
        settle();
        return gang;
    }
    /// To be called after every deadline.
    void watch(ClientId client) {
        if (held(client) > 0)
            since_ = now_;
        else
            longest_ = std::max(longest_, now_ - since_);
    }
    /// So long a client waits at most while there are so many others.
    static Nanoseconds bound(int others) { return others * (kMostAhead + 1) * ArbiterLimits{}.turn; }

    Time since_ = now_;
    Nanoseconds longest_{0};
};

TEST_F(LongestWait, IsBoundedBesideOneAThousandTimesHeavier) {
    start("core:2 pu:1");
    const ClientId light = join_gang(1);
    const ClientId heavy = join_gang(1000);
    int turns_of_heavy = 0, turns_of_light = 0;
    pass(10s, now_, *arbiter_, [&] {
        settle();
        watch(light);
        turns_of_heavy += held(heavy) > 0;
        turns_of_light += held(light) > 0;
    });
    EXPECT_LE(longest_, bound(1));
    EXPECT_NEAR(turns_of_heavy, kMostAhead * turns_of_light, turns_of_light) << "its weight still counts";
}

TEST_F(LongestWait, IsBoundedAmongManyOfAllWeights) {
    start("core:2 pu:1");
    const ClientId light = join_gang(1);
    for (const int weight : {1000, 1000, 500, 64, 8, 2, 1}) (void)join_gang(weight);
    pass(20s, now_, *arbiter_, [&] {
        settle();
        watch(light);
    });
    EXPECT_LE(longest_, bound(7));
}

TEST_F(LongestWait, IsBoundedThoughOthersComeAndGoAllTheTime) {
    start("core:2 pu:1");
    const ClientId light = join_gang(1);
    std::vector<ClientId> others = {join_gang(1000), join_gang(1000), join_gang(1000)};
    size_t oldest = 0;
    pass(20s, now_, *arbiter_, [&] {
        settle();
        watch(light);
        arbiter_->leave(others[oldest], false, now_);
        settle();
        others[oldest] = join_gang(1000);
        oldest = (oldest + 1) % others.size();
    });
    EXPECT_LE(longest_, bound(3));
}

TEST_F(LongestWait, IsBoundedThoughAnotherChangesItsWeightAndDemandAllTheTime) {
    start("core:2 pu:1");
    const ClientId light = join_gang(2);
    const ClientId other = join_gang(1);
    int change = 0;
    pass(20s, now_, *arbiter_, [&] {
        settle();
        watch(light);
        arbiter_->set_limits(other, 0, 0, ++change % 2 == 0 ? 1 : 1000, now_);
        settle();
        show(other, change % 3 == 0 ? 0 : 2, true);
    });
    EXPECT_LE(longest_, bound(1));
}

TEST_F(LongestWait, OfANewcomerBesideItsEqualIsTheRestOfTheTurn) {
    start("core:2 pu:1");
    (void)join_gang(1000);
    (void)join_gang(1000);
    pass(1s, now_, *arbiter_, [&] { settle(); });
    const ClientId comes = join_gang(1000);
    since_ = now_;
    pass(200ms, now_, *arbiter_, [&] {
        settle();
        watch(comes);
    });
    EXPECT_LE(longest_, 2 * ArbiterLimits{}.turn);
}

}  // namespace
}  // namespace heddle
