// Programs that own CPUs, and what that means under which policy.
#include "support/arbiter_fixture.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;

class ArbiterOwners : public test::ArbiterTest {};

TEST_F(ArbiterOwners, OwnersWinTheirsBack) {
    start("core:4 pu:1", "owned");
    const ClientId owner = join(0, {}, 1, CpuSet::parse("0-2"));
    const ClientId guest = join(4);
    EXPECT_EQ(held(guest), 4);
    show(owner, 3);
    EXPECT_EQ(published_[owner].cpus, CpuSet::parse("0-2"));
    EXPECT_EQ(published_[guest].cpus, CpuSet::parse("3"));
}

TEST_F(ArbiterOwners, AnOwnerComesToRunOnItsVeryOwnCpus) {
    start("core:8 pu:1", "owned");
    const ClientId first = join(4);
    const ClientId second = join(4);
    const ClientId owner = join(4, {}, 1, CpuSet::parse("2-5"));
    EXPECT_EQ(published_[owner].cpus, CpuSet::parse("2-5"));
    EXPECT_EQ(held(first), 2);
    EXPECT_EQ(held(second), 2);
    const int before = moves_;
    for (int i = 0; i < 100; ++i) {
        now_ += 2ms;
        arbiter_->tick(now_);
        settle();
    }
    EXPECT_EQ(moves_, before) << "and there it rests";
}

TEST_F(ArbiterOwners, AnOwnerKeepsItsOwnFromOneThatCanUseNothingElse) {
    start("core:8 pu:1", "owned");
    const ClientId owner = join(4, {}, 1, CpuSet::parse("4-7"));
    const int before = moves_;
    const ClientId guest = join(1, CpuSet::parse("4-7"));
    EXPECT_TRUE(published_[owner].cpus.contains(CpuSet::parse("4-7"))) << published_[owner].cpus.to_list();
    EXPECT_EQ(held(guest), 0);
    EXPECT_EQ(moves_, before) << "what it would win back at once is not asked back";
}

TEST_F(ArbiterOwners, AnOwnerThatLendsKeepsItsOwnRatherThanOthers) {
    start("core:8 pu:1", "owned");
    const ClientId owner = join(8, {}, 1, CpuSet::parse("5-7"));
    ASSERT_EQ(held(owner), 8);
    const ClientId guest = join(5);
    EXPECT_TRUE(published_[owner].cpus.contains(CpuSet::parse("5-7"))) << published_[owner].cpus.to_list();
    show(owner, 3, true);
    EXPECT_EQ(published_[owner].cpus, CpuSet::parse("5-7"));
    EXPECT_EQ(held(guest), 5);
}

TEST_F(ArbiterOwners, WhoIsRestoredOwnsItsOwnAndLendsItUntilItIsBack) {
    start("core:4 pu:1", "owned");
    Registration owner;
    owner.name = "owner";
    owner.demand = 2;
    owner.owned = CpuSet::parse("1-2,9");  // the machine had more CPUs then
    const ClientId away = arbiter_->restore(owner, now_).value();
    EXPECT_EQ(arbiter_->reservation_of(away).owned, CpuSet::parse("1-2"));
    owner.owned = CpuSet::parse("0-1");
    const ClientId late = arbiter_->restore(owner, now_).value();
    EXPECT_EQ(arbiter_->reservation_of(late).owned, CpuSet{0}) << "one owner a CPU";
    owner.owned = CpuSet::parse("2");
    EXPECT_EQ(arbiter_->reservation_of(arbiter_->restore(owner, now_).value()).owned, CpuSet{})
        << "nothing is left to own";

    now_ += 1s;
    const ClientId guest = join(4);
    EXPECT_EQ(held(guest), 4);
    ClientId back;
    owner.owned = CpuSet::parse("1-2");
    EXPECT_EQ(arbiter_->join(owner, now_, back), Refusal::kOwned) << "another client";
    owner.returns = away;
    ASSERT_EQ(arbiter_->join(owner, now_, back), Refusal::kNone);
    settle();
    EXPECT_EQ(published_[back].cpus, CpuSet::parse("1-2"));
    arbiter_->leave(late, false, now_);
    EXPECT_EQ(arbiter_->owner_of(0), ClientId{0});
}

TEST_F(ArbiterOwners, WhoIsAwayTakesNothingBack) {
    start("core:4 pu:1", "owned");
    Registration owner;
    owner.name = "owner";
    owner.held = CpuSet::parse("0-1");
    owner.owned = CpuSet::parse("2-3");
    const ClientId away = arbiter_->restore(owner, now_).value();
    const ClientId guest = join(4);
    for (int i = 0; i < 500; ++i) {
        now_ += 2ms;
        arbiter_->tick(now_);
        settle();
    }
    EXPECT_EQ(published_[guest].cpus, CpuSet::parse("2-3"));
    EXPECT_EQ(arbiter_->cpus_of(away), CpuSet::parse("0-1"));
}

TEST_F(ArbiterOwners, AMaskOutsideTheMachineIsRefusedWhereOwningMeansNothingToo) {
    start("core:4 pu:1");
    Registration registration;
    registration.owned = CpuSet{4};
    ClientId id;
    EXPECT_EQ(arbiter_->join(registration, now_, id), Refusal::kNotThere);
}

TEST_F(ArbiterOwners, NobodyOwnsWhatIsOwnedOrNotThereOrTooMuch) {
    arbiter_ = std::make_unique<Arbiter>(Machine::synthetic("core:8 pu:1"), make_policy("owned"),
                                         ArbiterLimits{.owned_per_user = 4}, now_);
    const ClientId owner = join(1, {}, 1, CpuSet::parse("0-2"));
    EXPECT_EQ(arbiter_->owner_of(2), owner);
    Registration registration;
    registration.user = 1;
    registration.owned = CpuSet::parse("2-3");
    ClientId id;
    EXPECT_EQ(arbiter_->join(registration, now_, id), Refusal::kOwned);
    registration.owned = CpuSet::parse("7-8");
    EXPECT_EQ(arbiter_->join(registration, now_, id), Refusal::kNotThere);
    registration.owned = CpuSet::parse("3-7");
    EXPECT_EQ(arbiter_->join(registration, now_, id), Refusal::kOwnsTooMany);
    registration.owned = CpuSet::parse("3-6");
    EXPECT_EQ(arbiter_->join(registration, now_, id), Refusal::kNone);
    arbiter_->leave(owner, true, now_);
    settle();
    EXPECT_EQ(arbiter_->owner_of(2), ClientId{0}) << "who is gone owns nothing";
}

TEST_F(ArbiterOwners, OwningMeansNothingToAPolicyWithoutOwners) {
    start("core:4 pu:1");
    const ClientId a = join(4, {}, 1, CpuSet::parse("0-2"));
    const ClientId b = join(4, {}, 1, CpuSet::parse("0-3"));
    EXPECT_EQ(held(a), 2);
    EXPECT_EQ(held(b), 2);
    EXPECT_EQ(arbiter_->owner_of(0), ClientId{0});
}

TEST_F(ArbiterOwners, OwnersOfCpusThatWereTakenFromTheMachineShareTheRest) {
    start("core:4 pu:1", "owned");
    const ClientId a = join(4, {}, 1, CpuSet::parse("0-2"));
    const ClientId b = join(4, {}, 1, CpuSet::parse("3"));
    arbiter_->set_cpus(CpuSet::parse("2-3"), now_);
    settle();
    EXPECT_EQ(published_[a].cpus, CpuSet::parse("2"));
    EXPECT_EQ(published_[b].cpus, CpuSet::parse("3"));
}

}  // namespace
}  // namespace heddle
