#include <algorithm>

#include "support/arbiter_fixture.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;
using test::ArbiterTest;

TEST_F(ArbiterTest, AProgramOnAnIdleMachineGetsAllOfItAtOnce) {
    start("core:8 pu:1");
    const ClientId a = join(1);
    EXPECT_EQ(held(a), 8);
    EXPECT_FALSE(arbiter_->next_deadline()) << "nobody waits: nothing to wake up for";
}

TEST_F(ArbiterTest, TheSecondProgramGetsItsShareAndAllWhenTheFirstEnds) {
    start("core:8 pu:1");
    const ClientId a = join(8);
    const ClientId b = join(8);
    EXPECT_EQ(held(a), 4);
    EXPECT_EQ(held(b), 4);
    EXPECT_TRUE(published_[a].contended);
    arbiter_->leave(a, false, now_);
    settle();
    EXPECT_EQ(held(b), 8);
    EXPECT_FALSE(published_[b].contended);
}

TEST_F(ArbiterTest, NothingMovesWhileNobodyLacksACpu) {
    start("core:8 pu:1");
    const ClientId a = join(3);
    const ClientId b = join(3);
    const int before = moves_;
    for (const int demand : {1, 4, 2, 3, 1}) {
        show(a, demand, true);
        show(b, 3 - demand / 2, true);
    }
    EXPECT_EQ(moves_, before);
    show(b, 2, true);
    show(a, 6);
    EXPECT_EQ(held(a), 6) << "now a lacks one, and b has one that it does not use";
}

TEST_F(ArbiterTest, FallingDemandCountsOnceItLasts) {
    start("core:2 pu:1");
    const ClientId a = join(2);
    const ClientId b = join(2);
    EXPECT_EQ(held(a), 1);
    show(a, 0);
    EXPECT_EQ(held(b), 1) << "a moment without demand is no reason";
    const Time since = now_;
    now_ += 2ms;
    arbiter_->observe(a, 0, since, false, now_);
    settle();
    EXPECT_EQ(held(b), 2);
    show(a, 2);
    EXPECT_EQ(held(a), 1) << "rising demand counts at once";
}

TEST_F(ArbiterTest, ARevokedCpuMovesOnlyAfterItsHolderLeft) {
    start("core:2 pu:1");
    obedient_ = false;
    const ClientId a = join(2);
    const ClientId b = join(2);
    EXPECT_EQ(held(a), 1);
    EXPECT_EQ(held(b), 0) << "the CPU is out of a's grant, but a may still be on it";
    const uint32_t epoch = published_[a].epoch;
    arbiter_->obeyed(a, epoch + 2, now_);
    settle();
    EXPECT_EQ(held(b), 0) << "an epoch that was never published obeys nothing";
    arbiter_->obeyed(a, epoch, now_);
    settle();
    EXPECT_EQ(held(b), 1);
}

TEST_F(ArbiterTest, AHolderThatDoesNotLeaveIsFencedAfterItsDeadline) {
    start("core:2 pu:1");
    obedient_ = false;
    const ClientId a = join(2);
    const ClientId b = join(2);
    ASSERT_TRUE(arbiter_->next_deadline());
    now_ += 10ms;
    arbiter_->tick(now_);
    settle();
    ASSERT_EQ(fences_.size(), 1U);
    EXPECT_EQ(fences_[0].client, a);
    EXPECT_EQ(fences_[0].cpus.count(), 1);
    arbiter_->fenced(a, false, now_);
    settle();
    EXPECT_EQ(held(b), 1) << "who cannot be bound shares the CPU, and is counted";
    EXPECT_EQ(arbiter_->failed_fences(), 1U);
}

TEST_F(ArbiterTest, TheEndByForceIsShownBeforeTheCpuIsAnothers) {
    start("core:2 pu:1");
    obedient_ = false;
    const ClientId a = join(2);
    const ClientId b = join(2);
    const CpuSet asked_back = arbiter_->leaving_of(a);
    now_ += 10ms;
    arbiter_->tick(now_);
    settle();
    const uint32_t generation = arbiter_->grant_of(asked_back.first()).generation;
    arbiter_->fenced(a, true, now_);
    const auto actions = arbiter_->take_actions();
    const auto ended =
        std::ranges::find(actions, ArbiterAction(EndByForce{a, asked_back.first(), generation}));
    const auto granted = std::ranges::find_if(actions, [b](const ArbiterAction& action) {
        const auto* publish = std::get_if<Publish>(&action);
        return publish != nullptr && publish->client == b && !publish->cpus.empty();
    });
    ASSERT_NE(ended, actions.end());
    ASSERT_NE(granted, actions.end());
    EXPECT_LT(ended, granted);
}

TEST_F(ArbiterTest, ADeadHoldersCpusMoveInTheSameCall) {
    start("core:4 pu:1");
    obedient_ = false;
    const ClientId a = join(4);
    const ClientId b = join(4);
    EXPECT_EQ(held(b), 0);
    arbiter_->leave(a, true, now_);
    settle();
    EXPECT_EQ(held(b), 4);
}

TEST_F(ArbiterTest, GrantsStayWithinAffinityAndLimits) {
    start("core:8 pu:1");
    const ClientId a = join(8, CpuSet::parse("0-1"));
    EXPECT_EQ(published_[a].cpus, CpuSet::parse("0-1"));
    const ClientId b = join(8);
    EXPECT_EQ(held(b), 6);
    arbiter_->set_limits(b, 0, 2, 1, now_);
    settle();
    EXPECT_EQ(held(a), 2);
}

TEST_F(ArbiterTest, WhoMayRunAnywhereMakesRoomForWhoMayNot) {
    start("core:4 pu:1");
    const ClientId b = join(2);
    arbiter_->set_limits(b, 0, 2, 1, now_);
    settle();
    ASSERT_EQ(published_[b].cpus, CpuSet::parse("0-1"));
    const ClientId a = join(1, CpuSet::parse("0"));
    EXPECT_EQ(published_[a].cpus, CpuSet::parse("0"));
    EXPECT_EQ(held(b), 2);
}

/// Where the one that holds the CPU has no more than its share, and no CPU is free: another gives it one.
TEST_F(ArbiterTest, SomebodyElseGivesWhatMakesRoom) {
    for (const char* topology : {"core:4 pu:1", "core:8 pu:1"}) {
        start(topology);
        const int cpus = arbiter_->cpus().count();
        const ClientId first = join(cpus), second = join(cpus);
        const ClientId confined = join(1, CpuSet::parse("0"));
        EXPECT_EQ(published_[confined].cpus, CpuSet::parse("0")) << topology;
        EXPECT_EQ(held(first) + held(second), cpus - 1);
        const int before = moves_;
        for (int i = 0; i < 20; ++i) {
            now_ += 2ms;
            arbiter_->tick(now_);
            settle();
        }
        EXPECT_EQ(moves_, before) << topology;
    }
}

TEST_F(ArbiterTest, MoreProgramsThanCpusServesTheFirstAndNeverMovesInCircles) {
    start("core:2 pu:1");
    const ClientId a = join(2);
    const ClientId b = join(2);
    const ClientId c = join(2);
    EXPECT_EQ(held(a) + held(b), 2);
    EXPECT_EQ(held(c), 0);
    const int before = moves_;
    for (int i = 0; i < 100; ++i) {
        now_ += 2ms;
        arbiter_->tick(now_);
        settle();
    }
    EXPECT_EQ(moves_, before);
}

TEST_F(ArbiterTest, GrantsAreCompact) {
    start("package:2 core:4 pu:2");
    const ClientId a = join(16);
    const ClientId b = join(16);
    EXPECT_EQ(published_[a].cpus, CpuSet::parse("0-7"));
    EXPECT_EQ(published_[b].cpus, CpuSet::parse("8-15")) << "a package each";
}

TEST_F(ArbiterTest, CoreTimeAddsUpToAllCpus) {
    start("core:4 pu:1");
    now_ += 1s;
    const ClientId a = join(4, CpuSet{0, 1, 2});
    now_ += 2s;
    const ClientId b = join(4);
    now_ += 3s;
    arbiter_->leave(a, true, now_);
    settle();
    now_ += 4s;
    arbiter_->set_cpus(CpuSet{0, 1, 2}, now_);
    settle();
    now_ += 5s;
    // Four CPUs idle for 1 s, then one for 2 s; all others were granted. The fourth is gone for the last 5 s.
    const CoreTime time = arbiter_->core_time(now_);
    EXPECT_EQ(time.idle, 6s);
    EXPECT_EQ(time.used, 4 * 10s - 6s + 3 * 5s);
    EXPECT_EQ(time.lent, 0s);
    EXPECT_LT(arbiter_->clients(now_)[0].cpu_time, time.used) << "who has left counts";
    EXPECT_EQ(held(b), 3);
}

TEST_F(ArbiterTest, CoreTimeSaysWhatIsLent) {
    start("core:4 pu:1", "owned");
    const ClientId owner = join(4, {}, 1, CpuSet{0, 1});
    now_ += 1s;
    EXPECT_EQ(arbiter_->core_time(now_).lent, 0s);
    show(owner, 0, true);
    const ClientId guest = join(4);
    ASSERT_EQ(held(guest), 4);
    now_ += 3s;
    EXPECT_EQ(arbiter_->core_time(now_).lent, 6s);
    EXPECT_EQ(arbiter_->core_time(now_).used, 16s);
    arbiter_->leave(owner, false, now_);
    EXPECT_EQ(arbiter_->core_time(now_).lent, 6s) << "it counts, and never falls";
}

TEST_F(ArbiterTest, FollowsTheCpusThatThereAreToHandOut) {
    start("core:4 pu:1");
    const ClientId a = join(2);
    const ClientId b = join(2);
    arbiter_->set_cpus(CpuSet::parse("1-2"), now_);
    settle();
    EXPECT_EQ(published_[a].cpus | published_[b].cpus, CpuSet::parse("1-2"));
    EXPECT_EQ(held(a), 1);
    arbiter_->set_cpus(CpuSet::parse("0-3"), now_);
    settle();
    EXPECT_EQ(held(a), 2);
    EXPECT_EQ(held(b), 2);
}

TEST_F(ArbiterTest, ACpuThatIsGoneAndComesBackBeforeItsHolderLeftIsNotLost) {
    start("core:4 pu:1");
    obedient_ = false;
    const ClientId a = join(4);
    arbiter_->set_cpus(CpuSet::parse("0-1"), now_);
    settle();
    arbiter_->set_cpus(CpuSet::parse("0-3"), now_);
    settle();
    arbiter_->obeyed(a, published_[a].epoch, now_);
    settle();
    EXPECT_EQ(held(a), 4);
}

TEST_F(ArbiterTest, RefusesWhomItCannotServe) {
    start("core:4 pu:1");
    Registration registration;
    registration.allowed = CpuSet::parse("100");
    ClientId id;
    EXPECT_EQ(arbiter_->join(registration, now_, id), Refusal::kNoCpus);
    registration.allowed = {};
    const ArbiterLimits limits;
    for (int i = 0; i < limits.clients_per_user; ++i)
        EXPECT_EQ(arbiter_->join(registration, now_, id), Refusal::kNone);
    EXPECT_EQ(arbiter_->join(registration, now_, id), Refusal::kUserFull) << "others have a place yet";
    for (int i = limits.clients_per_user; i < limits.clients; ++i) {
        registration.user = static_cast<UserId>(i / limits.clients_per_user);
        EXPECT_EQ(arbiter_->join(registration, now_, id), Refusal::kNone);
    }
    registration.user = 1000;
    EXPECT_EQ(arbiter_->join(registration, now_, id), Refusal::kFull);
}

/// Says what no policy may.
class Nonsense final : public Policy {
  public:
    explicit Nonsense(std::vector<int> says) : says_(std::move(says)) {}
    [[nodiscard]] std::string_view name() const override { return "nonsense"; }
    [[nodiscard]] std::vector<int> targets(std::span<const Claim> /*claims*/, int /*cpus*/) const override {
        return says_;
    }

  private:
    std::vector<int> says_;
};

TEST_F(ArbiterTest, APolicyThatErrsCostsNoCore) {
    for (const std::vector<int>& says : {std::vector<int>{}, {-7, 1'000'000}, {9, 9, 9, 9}, {4}, {0, 0, 0}}) {
        arbiter_ = std::make_unique<Arbiter>(Machine::synthetic("core:4 pu:1"),
                                             std::make_unique<Nonsense>(says), ArbiterLimits{}, now_);
        const ClientId a = join(4);
        const ClientId b = join(3);
        const ClientId c = join(2);
        for (int i = 0; i < 100; ++i) {
            show(i % 2 == 0 ? a : b, i % 5, true);
            now_ += 2ms;
            arbiter_->tick(now_);
            settle();
        }
        EXPECT_LE(held(a) + held(b) + held(c), 4);
        arbiter_->leave(a, true, now_);
        settle();
    }
}

TEST_F(ArbiterTest, SamplingEndsWhenNobodyCompetes) {
    start("core:2 pu:1");
    const ClientId a = join(2);
    const ClientId b = join(2);
    EXPECT_TRUE(arbiter_->sampling());
    show(a, 0, true);
    show(b, 0, true);
    for (int i = 0; i < 1000; ++i) {
        now_ += 2ms;
        arbiter_->tick(now_);
        settle();
    }
    EXPECT_FALSE(arbiter_->sampling());
    EXPECT_FALSE(arbiter_->next_deadline());
}

}  // namespace
}  // namespace heddle
