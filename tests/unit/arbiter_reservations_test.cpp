// Minima and CPUs of one's own that a program reserves for itself and all that it starts; and programs that
// are stopped.
#include "support/arbiter_fixture.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;

class ArbiterReservations : public test::ArbiterTest {
  protected:
    static Registration of(uint32_t pid, uint32_t around, int demand, int min, const CpuSet& owned = {}) {
        Registration registration;
        registration.name = "of a job";
        registration.pid = pid;
        registration.around = around;
        registration.demand = demand;
        registration.min = min;
        registration.owned = owned;
        return registration;
    }
    ClientId enter(const Registration& registration) {
        ClientId id;
        EXPECT_EQ(arbiter_->join(registration, now_, id), Refusal::kNone);
        settle();
        return id;
    }
    int min_of(ClientId id) {
        for (const ClientStatus& client : arbiter_->clients(now_))
            if (client.client == id) return client.min;
        return -1;
    }
};

TEST_F(ArbiterReservations, AMinimumIsForTheCommandThatAShellWaitsFor) {
    start("core:8 pu:1");
    const ClientId other = join(8);
    const ClientId shell = enter(of(10, 0, 1, 6));
    EXPECT_EQ(held(shell), 6);
    show(shell, 0, true);
    const ClientId command = enter(of(12, 10, 8, 6));
    EXPECT_EQ(held(command), 6);
    EXPECT_EQ(held(other), 2);
    EXPECT_EQ(held(shell), 0);
    EXPECT_EQ(min_of(shell), 0);
    EXPECT_EQ(min_of(command), 6);
    arbiter_->leave(command, false, now_);
    settle();
    EXPECT_EQ(min_of(shell), 6) << "the next command's";
}

TEST_F(ArbiterReservations, CommandsShareAMinimumByDemand) {
    start("core:16 pu:1");
    const ClientId shell = enter(of(10, 0, 0, 6));
    const ClientId large = enter(of(11, 10, 8, 6));
    const ClientId small = enter(of(12, 11, 2, 6));
    EXPECT_EQ(min_of(shell) + min_of(large) + min_of(small), 6);
    EXPECT_EQ(min_of(shell), 0);
    EXPECT_GT(min_of(large), min_of(small));
    EXPECT_GT(min_of(small), 0);
    show(large, 1, true);
    EXPECT_EQ(min_of(large), 1);
    EXPECT_EQ(min_of(small), 5) << "what nobody demands is the youngest's";
}

TEST_F(ArbiterReservations, WhoAsksForSomethingElseHasItForItself) {
    start("core:16 pu:1");
    const ClientId shell = enter(of(10, 0, 0, 6));
    const ClientId within = enter(of(11, 10, 4, 2));
    Registration strangers = of(12, 10, 4, 6);
    strangers.user = 7;
    const ClientId stranger = enter(strangers);
    const ClientId namesake = enter(of(13, 0, 4, 6));
    EXPECT_EQ(min_of(shell), 6);
    EXPECT_EQ(min_of(within), 2);
    EXPECT_EQ(min_of(stranger), 6);
    EXPECT_EQ(min_of(namesake), 6);
    arbiter_->set_limits(shell, 3, 0, 1, now_);
    EXPECT_EQ(min_of(shell), 3);
}

TEST_F(ArbiterReservations, OwnedCpusAreForTheCommandThatAShellWaitsFor) {
    start("core:8 pu:1", "owned");
    const CpuSet owned = CpuSet::parse("2-5");
    const ClientId shell = enter(of(10, 0, 0, 0, owned));
    const ClientId guest = join(8);
    const ClientId command = enter(of(12, 10, 4, 0, owned));
    EXPECT_EQ(published_[command].cpus, owned);
    EXPECT_EQ(held(guest), 4);
    Registration thief = of(13, 10, 4, 0, CpuSet::parse("5-6"));
    ClientId id;
    EXPECT_EQ(arbiter_->join(thief, now_, id), Refusal::kOwned);
    arbiter_->leave(shell, false, now_);
    settle();
    show(command, 3, true);
    const ClientId second = enter(of(14, 12, 1, 0, owned));
    EXPECT_EQ(held(second), 1);
    EXPECT_EQ(held(command), 3);
    EXPECT_EQ(held(guest), 4);
    EXPECT_EQ(published_[second].cpus | published_[command].cpus, owned);
    EXPECT_EQ(arbiter_->owner_of(published_[second].cpus.first()), second);
    arbiter_->leave(command, true, now_);
    arbiter_->leave(second, true, now_);
    settle();
    EXPECT_EQ(arbiter_->owner_of(2), ClientId{0});
}

TEST_F(ArbiterReservations, OwnedCpusGoToThoseOfTheJobThatCanUseThem) {
    start("core:8 pu:1", "owned");
    const CpuSet owned = CpuSet::parse("0-3");
    (void)enter(of(10, 0, 0, 0, owned));
    const ClientId guest = join(8);
    Registration bound = of(12, 10, 4, 0, owned);
    bound.allowed = CpuSet::parse("0-1");
    const ClientId command = enter(bound);
    EXPECT_EQ(published_[command].cpus, CpuSet::parse("0-1"));
    EXPECT_EQ(held(guest), 6);
    arbiter_->set_cpus(CpuSet::parse("1-7"), now_);
    settle();
    EXPECT_EQ(published_[command].cpus, CpuSet{1});
}

/// The program that they are of is not managed, and reserved the same.
TEST_F(ArbiterReservations, OfNoClientAreSharedByWhatItStarts) {
    start("core:8 pu:1", "owned");
    const ClientId one = enter(of(11, 10, 2, 3, CpuSet::parse("0-3")));
    const ClientId other = enter(of(12, 10, 2, 3, CpuSet::parse("0-3")));
    EXPECT_TRUE(CpuSet::parse("0-3").contains(published_[other].cpus)) << published_[other].cpus.to_list();
    EXPECT_EQ(held(other), 2);
    EXPECT_EQ(min_of(one) + min_of(other), 3);
}

TEST_F(ArbiterReservations, WhoIsRefusedIsOfNoJob) {
    start("core:8 pu:1", "owned");
    const ClientId owner = enter(of(10, 0, 1, 0, CpuSet::parse("0-3")));
    ClientId id;
    EXPECT_EQ(arbiter_->join(of(11, 0, 1, 0, CpuSet::parse("3-4")), now_, id), Refusal::kOwned);
    const ClientId next = enter(of(12, 0, 1, 1));
    EXPECT_EQ(arbiter_->job_of(next).value, arbiter_->job_of(owner).value + 1);
}

TEST_F(ArbiterReservations, CountOnceAgainstWhatAUserMayOwn) {
    arbiter_ = std::make_unique<Arbiter>(Machine::synthetic("core:8 pu:1"), make_policy("owned"),
                                         ArbiterLimits{.owned_per_user = 4}, now_);
    (void)enter(of(10, 0, 0, 0, CpuSet::parse("0-3")));
    (void)enter(of(11, 10, 2, 0, CpuSet::parse("0-3")));
    (void)enter(of(12, 10, 2, 0, CpuSet::parse("0-3")));
    ClientId id;
    EXPECT_EQ(arbiter_->join(of(13, 0, 2, 0, CpuSet{4}), now_, id), Refusal::kOwnsTooMany);
}

TEST_F(ArbiterReservations, AreSharedAfterARestartToo) {
    start("core:8 pu:1", "owned");
    Registration shell = of(10, 0, 0, 2, CpuSet::parse("0-3"));
    Registration command = of(11, 10, 4, 2, CpuSet::parse("0-3"));
    shell.job = command.job = JobId{5};
    command.held = CpuSet::parse("0-3");
    const ClientId shell_away = arbiter_->restore(shell, now_).value();
    const ClientId command_away = arbiter_->restore(command, now_).value();
    EXPECT_EQ(arbiter_->cpus_of(command_away), CpuSet::parse("0-3"));
    now_ += 1s;
    command.returns = command_away;
    const ClientId back = enter(command);
    shell.returns = shell_away;
    const ClientId shell_back = enter(shell);
    EXPECT_EQ(published_[back].cpus, CpuSet::parse("0-3"));
    EXPECT_EQ(arbiter_->job_of(back), arbiter_->job_of(shell_back));
    EXPECT_NE(arbiter_->job_of(join(1)), arbiter_->job_of(back));
}

TEST_F(ArbiterReservations, AMinimumOfAShellThatHoldsNothingIsSharedAfterARestartToo) {
    start("core:8 pu:1");
    Registration shell = of(10, 0, 0, 4);
    Registration command = of(11, 10, 6, 4);
    shell.job = command.job = JobId{5};
    command.held = CpuSet::parse("0-3");
    const auto shell_away = arbiter_->restore(shell, now_);
    ASSERT_TRUE(shell_away);
    command.returns = arbiter_->restore(command, now_).value();
    shell.returns = *shell_away;
    now_ += 1s;
    const ClientId shell_back = enter(shell);
    const ClientId back = enter(command);
    EXPECT_EQ(min_of(shell_back) + min_of(back), 4);
    EXPECT_EQ(min_of(back), 4);
}

TEST_F(ArbiterReservations, WhoComesBackWithOtherWishesIsOfAnotherJob) {
    start("core:8 pu:1", "owned");
    Registration one = of(10, 0, 0, 1), other = of(11, 10, 0, 1);
    one.job = other.job = JobId{5};
    one.returns = arbiter_->restore(one, now_).value();
    other.returns = arbiter_->restore(other, now_).value();
    now_ += 1s;
    one.owned = CpuSet::parse("0-3");
    (void)enter(one);
    other.owned = CpuSet::parse("3-4");
    ClientId id;
    EXPECT_EQ(arbiter_->join(other, now_, id), Refusal::kOwned);
}

TEST_F(ArbiterReservations, WhoIsStoppedGivesWayUntilItGoesOn) {
    start("core:8 pu:1");
    const ClientId stopped = enter(of(10, 0, 8, 2));
    const ClientId other = join(8);
    EXPECT_EQ(held(stopped), 4);
    arbiter_->was_stopped(stopped, now_);
    settle();
    EXPECT_EQ(held(stopped), 0);
    EXPECT_EQ(held(other), 8);
    show(stopped, 8, true);
    EXPECT_EQ(held(other), 8) << "its page says still what it said";
    arbiter_->goes_on(stopped, now_);
    show(stopped, 8, true);
    EXPECT_EQ(held(stopped), 4);
    EXPECT_EQ(held(other), 4);
}

TEST_F(ArbiterReservations, WhoIsStoppedKeepsWhatNobodyElseWantsAndGetsNoMore) {
    start("core:8 pu:1");
    const ClientId stopped = join(8);
    arbiter_->was_stopped(stopped, now_);
    const ClientId other = join(3);
    EXPECT_EQ(held(other), 3);
    EXPECT_EQ(held(stopped), 5);
    arbiter_->leave(other, false, now_);
    settle();
    EXPECT_EQ(held(stopped), 5) << "for the next one";
    arbiter_->goes_on(stopped, now_);
    settle();
    EXPECT_EQ(held(stopped), 8);
}

TEST_F(ArbiterReservations, WhoIsStoppedIsLookedAtThoughNobodyCompetes) {
    start("core:8 pu:1");
    const ClientId stopped = join(8);
    EXPECT_EQ(arbiter_->next_deadline(), std::nullopt);
    arbiter_->was_stopped(stopped, now_);
    EXPECT_EQ(arbiter_->stopped(), std::vector{stopped});
    EXPECT_TRUE(arbiter_->next_deadline());
    arbiter_->goes_on(stopped, now_);
    EXPECT_EQ(arbiter_->next_deadline(), std::nullopt);
}

}  // namespace
}  // namespace heddle
