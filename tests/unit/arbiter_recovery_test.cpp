// What an arbiter makes of the clients of the one before it.
#include "support/arbiter_fixture.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;
using test::ArbiterTest;

class ArbiterRecovery : public ArbiterTest {
  protected:
    /// It is still on both CPUs; the other one has none until the time of recovery is over.
    void comes_back_on_both(const Registration& holder, ClientId newcomer) {
        EXPECT_EQ(held(newcomer), 0);
        ClientId back;
        ASSERT_EQ(arbiter_->join(holder, now_, back), Refusal::kNone);
        settle();
        EXPECT_EQ(arbiter_->cpus_of(back), (CpuSet{0, 1}));
        now_ += 400ms;
        arbiter_->tick(now_);
        settle();
        EXPECT_EQ(held(newcomer), 1);
    }
};

/// A CPU that went from one program to another just before the arbiter died: the file says the first, the
/// second holds it, and comes back before it.
class ArbiterClaims : public ArbiterTest {
  protected:
    ArbiterClaims() {
        start("core:2 pu:1");
        lender_.name = "lender";
        lender_.held = {0};
        away_ = arbiter_->restore(lender_, now_).value();
        taker_.name = "taker";
        taker_.demand = 2;
        taker_.held = {0};
    }
    ClientId enter(const Registration& registration) {
        ClientId id;
        EXPECT_EQ(arbiter_->join(registration, now_, id), Refusal::kNone);
        settle();
        return id;
    }
    Registration lender_, taker_;
    ClientId away_;
};

TEST_F(ArbiterClaims, CountAsSoonAsTheOtherComesBackWithoutTheCpu) {
    const ClientId taker = enter(taker_);
    EXPECT_EQ(arbiter_->holder(0), away_) << "it may be on it";
    lender_.held = {};
    lender_.returns = away_;
    const ClientId lender = enter(lender_);
    EXPECT_EQ(arbiter_->holder(0), taker);
    EXPECT_FALSE(published_[lender].cpus.contains(0));
}

TEST_F(ArbiterClaims, CountWhereTheOtherDies) {
    const ClientId taker = enter(taker_);
    (void)join(2);
    arbiter_->leave(away_, true, now_);
    settle();
    EXPECT_EQ(arbiter_->holder(0), taker);
}

TEST_F(ArbiterClaims, AreNothingWhereTheOtherHoldsItOrIsAnotherUsers) {
    const ClientId taker = enter(taker_);
    lender_.returns = away_;
    const ClientId lender = enter(lender_);
    EXPECT_EQ(arbiter_->holder(0), lender);
    lender_.returns = {};
    lender_.user = 5;
    arbiter_->leave(lender, true, now_);
    arbiter_->leave(taker, true, now_);
    const ClientId first = arbiter_->restore(lender_, now_).value();
    (void)enter(taker_);
    const ClientId other = join(2);
    arbiter_->leave(first, true, now_);
    settle();
    EXPECT_NE(arbiter_->holder(0), first);
    EXPECT_TRUE(arbiter_->holder(0) == ClientId{0} || arbiter_->holder(0) == other)
        << "one user's claim to another's CPU";
}

/// What was asked back from it when the arbiter died is not in the file.
TEST_F(ArbiterRecovery, NobodyGetsWhatARestoredClientMayStillBeOn) {
    start("core:2 pu:1");
    Registration holder;
    holder.name = "holder";
    holder.demand = 2;
    holder.held = {0};
    const ClientId away = arbiter_->restore(holder, now_).value();
    const ClientId newcomer = join(2);
    holder.held = {0, 1};
    holder.returns = away;
    comes_back_on_both(holder, newcomer);
}

/// Then the file says that it has nothing.
TEST_F(ArbiterRecovery, NobodyGetsWhatOneMayStillBeOnThatWasAskedForAll) {
    start("core:2 pu:1");
    Registration holder;
    holder.name = "holder";
    holder.demand = 1;
    holder.returns = arbiter_->restore(holder, now_).value();
    const ClientId newcomer = join(2);
    holder.held = {0, 1};
    comes_back_on_both(holder, newcomer);
}

TEST_F(ArbiterRecovery, NobodyWaitsForWhoIsBackWithNothing) {
    start("core:2 pu:1");
    Registration holder;
    holder.returns = arbiter_->restore(holder, now_).value();
    const ClientId newcomer = join(2);
    EXPECT_EQ(held(newcomer), 0);
    holder.demand = 1;
    ClientId back;
    ASSERT_EQ(arbiter_->join(holder, now_, back), Refusal::kNone);
    settle();
    EXPECT_EQ(held(newcomer), 1);
    EXPECT_EQ(held(back), 1);
}

TEST_F(ArbiterRecovery, WhoNeverComesBackHoldsNobodyUp) {
    start("core:2 pu:1");
    Registration holder;
    holder.name = "holder";
    holder.held = {0};
    (void)arbiter_->restore(holder, now_).value();
    const ClientId newcomer = join(2);
    EXPECT_EQ(held(newcomer), 0);
    ASSERT_TRUE(arbiter_->next_deadline().has_value());
    now_ = std::max(now_, *arbiter_->next_deadline());
    arbiter_->tick(now_);
    settle();
    EXPECT_EQ(held(newcomer), 1);
}

TEST_F(ArbiterRecovery, ClientsOfAnEarlierArbiterKeepWhatTheyHold) {
    start("core:4 pu:1");
    Registration registration;
    registration.demand = 4;
    registration.held = CpuSet::parse("2");
    ClientId a, b;
    ASSERT_EQ(arbiter_->join(registration, now_, a), Refusal::kNone);
    settle();
    EXPECT_EQ(published_[a].cpus, CpuSet::parse("2")) << "others may still come with what they hold";
    registration.held = CpuSet::parse("0,3");
    ASSERT_EQ(arbiter_->join(registration, now_, b), Refusal::kNone);
    settle();
    EXPECT_EQ(published_[b].cpus, CpuSet::parse("0,3"));
    ASSERT_TRUE(arbiter_->next_deadline());
    now_ += 300ms;
    arbiter_->tick(now_);
    settle();
    EXPECT_EQ(held(a), 2);
    EXPECT_EQ(held(b), 2);
}

}  // namespace
}  // namespace heddle
