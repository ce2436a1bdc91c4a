// Components of a process whose CPUs come from an arbiter: a false one, that does what the test says.
#include "cores/outside.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <stdexcept>
#include <thread>

#include "cores/component_cpus.hpp"
#include "cores/worker_pool.hpp"
#include "heddle/cores.hpp"
#include "support/fake_link.hpp"
#include "support/wait_until.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;
using State = test::FakeArbiter::State;
using testing::Contains;
using testing::Not;

std::string work_text(const WorkCounts& work) {
    if (work == WorkCounts{}) return "";
    return "=" + std::to_string(work.ended) + "/" + std::to_string(work.inserted);
}

const Machine kEight = Machine::synthetic("package:2 core:2 pu:2");

class OutsideTest : public testing::Test {
  protected:
    void join(const CpuSet& held) {
        arbiter_ = std::make_unique<test::FakeArbiter>(held);
        outside_ = std::make_unique<Outside>(
            exchange_, [this](ArbiterLink::Callbacks c) { return arbiter_->connect(std::move(c)); });
    }
    ~OutsideTest() override {
        EXPECT_EQ(exchange_.ask([](const Ledger& ledger) { return ledger.check(); }), "");
    }
    [[nodiscard]] CpuSet free() const {
        return exchange_.ask([](const Ledger& ledger) { return ledger.free_cpus(); });
    }

    /// "NAME:CPUS" of each, and "=ENDED/INSERTED" of one with work component, as the page shows it.
    [[nodiscard]] std::string shown() const {
        std::string text;
        for (const auto& [name, cpus, work] : arbiter_->components())
            text += (text.empty() ? "" : " ") + name + ":" + cpus.to_list() + work_text(work);
        return text;
    }

    Exchange exchange_{kEight};
    std::unique_ptr<test::FakeArbiter> arbiter_;
    std::unique_ptr<Outside> outside_;
};

TEST_F(OutsideTest, ShowsWhatComponentsHaveDoneWhenAsked) {
    join({0, 1});
    Component tasks(exchange_, "tasks", {}), silent(exchange_, "silent", {});
    uint64_t ended = 3;
    EXPECT_EQ(tasks.on_count([&] { return WorkCounts{10, ended}; }), Outcome::kSuccess);
    ASSERT_EQ(tasks.borrow(), Outcome::kSuccess);
    EXPECT_EQ(shown(), "tasks:0-1") << "nobody asked";
    arbiter_->count();
    EXPECT_EQ(shown(), "tasks:0-1=3/10");
    ended = 10;
    arbiter_->count();
    EXPECT_EQ(shown(), "tasks:0-1=10/10");
    EXPECT_EQ(tasks.on_count({}), Outcome::kSuccess);
    arbiter_->count();
    EXPECT_EQ(shown(), "tasks:0-1");
}

TEST_F(OutsideTest, AComponentThatHasGoneIsNotAsked) {
    join({0, 1});
    bool gone = false;
    {
        Component tasks(exchange_, "tasks", {});
        EXPECT_EQ(tasks.on_count([&] {
            EXPECT_FALSE(gone);
            return WorkCounts{1, 1};
        }),
                  Outcome::kSuccess);
        EXPECT_EQ(tasks.detach(), Outcome::kSuccess);
        gone = true;
        EXPECT_EQ(tasks.on_count([] { return WorkCounts{2, 2}; }), Outcome::kPermission);
    }
    arbiter_->count();
    EXPECT_EQ(shown(), "");
}

/// The link's end waits for its callbacks.
TEST_F(OutsideTest, AnArbiterThatGrantsAndDiesWhileWeJoinHoldsNobodyUp) {
    arbiter_ = std::make_unique<test::FakeArbiter>(CpuSet{0, 1});
    arbiter_->set_managed(false);
    std::thread granting;
    outside_ = std::make_unique<Outside>(exchange_, [&](ArbiterLink::Callbacks callbacks) {
        auto link = arbiter_->connect(std::move(callbacks));
        granting = std::thread([&] { arbiter_->grant({3}); });
        while (!arbiter_->in(State::kHeld).contains(3)) std::this_thread::yield();
        return link;
    });
    granting.join();
    EXPECT_FALSE(outside_->joined());
    EXPECT_EQ(free(), CpuSet{}) << "it is not shared";
}

TEST_F(OutsideTest, GrantedCpusThatNobodyOwnsAreForTheTaker) {
    join({0, 1});
    EXPECT_EQ(free(), CpuSet({0, 1}));
    Component taker(exchange_, "taker", {});
    EXPECT_EQ(taker.borrow(), Outcome::kSuccess);
    EXPECT_EQ(taker.usable(), CpuSet({0, 1}));
    EXPECT_EQ(arbiter_->demand(), 2);
    EXPECT_EQ(taker.acquire_cpus(1), Outcome::kNoted);
    EXPECT_EQ(arbiter_->demand(), 3) << "what waits is demand, too";
    arbiter_->grant({5});
    EXPECT_EQ(taker.usable(), CpuSet({0, 1, 5}));
}

TEST_F(OutsideTest, AnOwnerHasWhatIsGrantedAndGetsTheRestLater) {
    join({0, 1});
    Component owner(exchange_, "owner", CpuSet::range(0, 4));
    EXPECT_EQ(owner.usable(), CpuSet({0, 1}));
    EXPECT_EQ(arbiter_->demand(), 4);
    std::vector<int> enabled;
    (void)owner.on_enable_cpu([&](int cpu) { enabled.push_back(cpu); });
    arbiter_->grant({2, 3});
    EXPECT_EQ(enabled, std::vector({2, 3}));
    EXPECT_EQ(owner.usable(), CpuSet::range(0, 4));
}

TEST_F(OutsideTest, WhatIsAskedBackIsReleasedOnceItsUserHasReturnedIt) {
    join({0, 1});
    Component owner(exchange_, "owner", {0});
    Component borrower(exchange_, "borrower", {});
    EXPECT_EQ(borrower.borrow_cpu(1), Outcome::kSuccess);
    std::vector<int> disabled;
    (void)owner.on_disable_cpu([&](int cpu) { disabled.push_back(cpu); });
    (void)borrower.on_disable_cpu([&](int cpu) { disabled.push_back(cpu); });
    arbiter_->ask_back({0, 1});
    EXPECT_EQ(disabled, std::vector({0, 1}));
    EXPECT_EQ(owner.usable(), CpuSet{});
    EXPECT_EQ(owner.to_return(), CpuSet{0});
    EXPECT_EQ(arbiter_->in(State::kLeaving), CpuSet({0, 1}));
    EXPECT_EQ(borrower.return_cpu(1), Outcome::kSuccess);
    EXPECT_EQ(arbiter_->in(State::kLeaving), CpuSet{0});
    EXPECT_EQ(owner.return_cpu(0), Outcome::kSuccess);
    EXPECT_EQ(arbiter_->in(State::kAway), CpuSet({0, 1}));
    EXPECT_EQ(arbiter_->demand(), 1) << "the owner's; the borrower has not asked again";
    arbiter_->grant({0});
    EXPECT_EQ(owner.usable(), CpuSet{0});
}

TEST_F(OutsideTest, WhoWaitsForCertainCpusHasOneOfThoseBackThatNobodyTook) {
    join({1, 5});
    arbiter_->set_others_wait(true);
    Component owner(exchange_, "owner", {1, 5}), taker(exchange_, "taker", {});
    EXPECT_EQ(owner.lend(), Outcome::kSuccess);
    ASSERT_EQ(arbiter_->in(State::kLent), CpuSet({1, 5}));
    arbiter_->set_others_wait(false);
    (void)taker.acquire_cpus(1, CpuSet{5});
    EXPECT_EQ(taker.usable(), CpuSet{5});
    EXPECT_EQ(arbiter_->in(State::kLent), CpuSet{1});
}

/// The demand is then as it was told; what is wanted is another CPU.
TEST_F(OutsideTest, WhoWantsItsOwnBackWhileAnotherIsBeingLentHasIt) {
    join({1, 5});
    arbiter_->set_others_wait(true);
    Component owner(exchange_, "owner", {1}), other(exchange_, "other", {5}), taker(exchange_, "taker", {});
    EXPECT_EQ(owner.lend_cpu(1), Outcome::kSuccess);
    ASSERT_EQ(arbiter_->in(State::kLent), CpuSet{1});
    arbiter_->set_others_wait(false);
    bool wanted_back = false;
    (void)taker.on_enable_cpu([&](int) {
        if (!std::exchange(wanted_back, true)) std::thread([&] { (void)owner.reclaim_cpu(1); }).join();
    });
    (void)taker.acquire_cpus(1, CpuSet{5});
    EXPECT_EQ(other.lend_cpu(5), Outcome::kSuccess);
    EXPECT_TRUE(wanted_back);
    EXPECT_EQ(owner.usable(), CpuSet{1});
}

TEST_F(OutsideTest, WhoIsDisabledMayLeaveWhatIsAskedBack) {
    join({0, 1});
    Component owner(exchange_, "owner", {0});
    (void)owner.on_disable_cpu([&](int cpu) { EXPECT_EQ(owner.return_cpu(cpu), Outcome::kSuccess); });
    EXPECT_EQ(owner.disable(), Outcome::kSuccess);
    arbiter_->ask_back({0});
    EXPECT_EQ(arbiter_->in(State::kAway), CpuSet{0});
    EXPECT_EQ(owner.return_cpu(1), Outcome::kDisabled);
}

TEST_F(OutsideTest, WithoutAnArbiterOwnersKeepWhatIsTheirs) {
    Component owner(exchange_, "owner", CpuSet::range(0, 8));
    exchange_.lend_unowned({0, 1});
    EXPECT_EQ(owner.usable(), CpuSet::range(0, 8));
    { Component gone(exchange_, "gone", {}); }
    EXPECT_EQ(free(), CpuSet{});
}

TEST_F(OutsideTest, WithoutAnArbiterALaterOwnerHasItsCpusAndLeavesNoneOfThemFree) {
    exchange_.lend_unowned({0, 1});
    {
        Component owner(exchange_, "owner", {1, 6});
        EXPECT_EQ(owner.usable(), CpuSet({1, 6}));
        EXPECT_EQ(free(), CpuSet{0});
    }
    EXPECT_EQ(free(), CpuSet({0, 1}));
}

TEST_F(OutsideTest, ACallbackMayReturnTheCpu) {
    join({0});
    Component owner(exchange_, "owner", {0});
    (void)owner.on_disable_cpu([&](int cpu) { EXPECT_EQ(owner.return_cpu(cpu), Outcome::kSuccess); });
    arbiter_->ask_back({0});
    EXPECT_EQ(arbiter_->in(State::kAway), CpuSet{0});
}

TEST_F(OutsideTest, AnIdleCpuIsReleasedAtOnce) {
    join({0, 1});
    arbiter_->ask_back({1});
    EXPECT_EQ(arbiter_->in(State::kAway), CpuSet{1});
    EXPECT_EQ(free(), CpuSet{0});
}

TEST_F(OutsideTest, ItComesBackBeforeItWasLeft) {
    join({0});
    Component owner(exchange_, "owner", {0});
    arbiter_->ask_back({0});
    arbiter_->grant({0});
    EXPECT_EQ(owner.usable(), CpuSet{0});
    EXPECT_EQ(owner.return_cpu(0), Outcome::kNoUpdate);
    EXPECT_EQ(arbiter_->in(State::kHeld), CpuSet{0});
}

TEST_F(OutsideTest, IdleCpusStayWhileNobodyWaitsAndAreLentWhereSomebodyDoes) {
    join({0, 1});
    Component owner(exchange_, "owner", {0, 1});
    EXPECT_EQ(owner.lend_cpu(0), Outcome::kSuccess);
    EXPECT_EQ(arbiter_->in(State::kHeld), CpuSet({0, 1}));
    EXPECT_EQ(arbiter_->demand(), 1);
    arbiter_->set_others_wait(true);
    arbiter_->forget();
    EXPECT_EQ(owner.lend_cpu(1), Outcome::kSuccess);
    EXPECT_EQ(arbiter_->in(State::kLent), CpuSet({0, 1}));
    EXPECT_EQ(arbiter_->said().front(), "demand 0") << "before they are lent";
}

TEST_F(OutsideTest, AnOwnerWinsBackWhatNobodyTook) {
    join({0, 1});
    arbiter_->set_others_wait(true);
    Component owner(exchange_, "owner", {0, 1});
    EXPECT_EQ(owner.lend(), Outcome::kSuccess);
    ASSERT_EQ(arbiter_->in(State::kLent), CpuSet({0, 1}));
    EXPECT_EQ(owner.reclaim_cpu(1), Outcome::kNoted);
    EXPECT_EQ(owner.usable(), CpuSet{1}) << "within the call";
    EXPECT_EQ(arbiter_->in(State::kLent), CpuSet{0});
}

TEST_F(OutsideTest, AnOwnerAsksForWhatAnotherProcessHas) {
    join({0, 1});
    arbiter_->set_others_wait(true);
    arbiter_->set_takers({0, 1});
    Component owner(exchange_, "owner", {0, 1});
    EXPECT_EQ(owner.lend(), Outcome::kSuccess);
    ASSERT_EQ(arbiter_->in(State::kAway), CpuSet({0, 1}));
    EXPECT_EQ(owner.reclaim(), Outcome::kNoted);
    EXPECT_EQ(owner.usable(), CpuSet{});
    EXPECT_EQ(arbiter_->demand(), 2);
    EXPECT_EQ(owner.reclaim_cpu(0), Outcome::kNoted);
    arbiter_->grant({0});
    EXPECT_EQ(owner.usable(), CpuSet{0});
}

TEST_F(OutsideTest, OneComponentsPetitionGetsWhatAnotherLentOut) {
    join({0, 1});
    arbiter_->set_others_wait(true);
    Component owner(exchange_, "owner", {0, 1});
    Component taker(exchange_, "taker", {});
    EXPECT_EQ(owner.lend_cpu(0), Outcome::kSuccess);
    ASSERT_EQ(arbiter_->in(State::kLent), CpuSet{0});
    EXPECT_EQ(taker.acquire_cpus(1), Outcome::kNoted);
    EXPECT_EQ(taker.usable(), CpuSet{0});
    EXPECT_EQ(owner.reclaim_cpu(0), Outcome::kNoted) << "and the owner wins it back from there";
    EXPECT_EQ(owner.usable(), CpuSet({0, 1}));
}

TEST_F(OutsideTest, ComponentsServeEachOtherFirst) {
    join({0});
    arbiter_->set_others_wait(true);
    Component owner(exchange_, "owner", {0});
    Component taker(exchange_, "taker", {});
    EXPECT_EQ(taker.acquire_cpus(1), Outcome::kNoted);
    EXPECT_EQ(arbiter_->demand(), 2);
    EXPECT_EQ(owner.lend(), Outcome::kSuccess);
    EXPECT_EQ(taker.usable(), CpuSet{0});
    EXPECT_THAT(arbiter_->said(), Not(Contains("lend 0")));
}

TEST_F(OutsideTest, TheArbiterSeesWhichComponentUsesWhichCpu) {
    Component early(exchange_, "early", {3});
    join({0, 1, 3});
    EXPECT_EQ(shown(), "early:3");
    Component owner(exchange_, "owner", {0, 1, 5});
    EXPECT_EQ(shown(), "early:3 owner:0-1");
    {
        Component taker(exchange_, "taker", {});
        EXPECT_EQ(taker.acquire_cpus(1), Outcome::kNoted);
        EXPECT_EQ(owner.lend_cpu(1), Outcome::kSuccess);
        EXPECT_EQ(shown(), "early:3 owner:0 taker:1");
        EXPECT_EQ(owner.reclaim_cpu(1), Outcome::kNoted);
        EXPECT_EQ(shown(), "early:3 owner:0-1");
        EXPECT_EQ(early.lend(), Outcome::kSuccess);
        EXPECT_EQ(taker.borrow(), Outcome::kSuccess);
        EXPECT_EQ(shown(), "owner:0-1 taker:3");
    }
    EXPECT_EQ(shown(), "owner:0-1") << "it has gone";
    arbiter_->ask_back({0});
    EXPECT_EQ(shown(), "owner:1");
    arbiter_->grant({0, 5});
    EXPECT_EQ(shown(), "owner:0-1,5");
    EXPECT_EQ(owner.detach(), Outcome::kSuccess);
    EXPECT_EQ(shown(), "");
}

TEST_F(OutsideTest, AfterItsEndThePageIsNotWrittenTo) {
    join({0, 1});
    outside_.reset();
    Component late(exchange_, "late", {0});
    EXPECT_EQ(shown(), "");
}

TEST_F(OutsideTest, WithoutAnArbiterNothingChanges) {
    arbiter_ = std::make_unique<test::FakeArbiter>(CpuSet{0});
    arbiter_->set_managed(false);
    const Outside outside(exchange_,
                          [this](ArbiterLink::Callbacks c) { return arbiter_->connect(std::move(c)); });
    EXPECT_FALSE(outside.joined());
    Component owner(exchange_, "owner", {0, 5});
    EXPECT_EQ(owner.usable(), CpuSet({0, 5}));
    EXPECT_EQ(free(), CpuSet{});
}

TEST_F(OutsideTest, AnExceptionOutOfACallbackOfTheArbitersStops) {
    join({0});
    Component owner(exchange_, "owner", {0, 1});
    (void)owner.on_enable_cpu([](int) { throw std::runtime_error("a component's"); });
    (void)owner.on_disable_cpu([](int) { throw std::runtime_error("a component's"); });
    arbiter_->grant({1});
    arbiter_->ask_back({0});
    EXPECT_EQ(owner.usable(), CpuSet{1});
}

TEST_F(OutsideTest, AllIsAwayAfterTheEnd) {
    join({0, 1});
    Component owner(exchange_, "owner", {0});
    outside_.reset();
    EXPECT_EQ(owner.usable(), CpuSet{});
    EXPECT_EQ(free(), CpuSet{});
}

/// Items that look whether their worker may be where it is.
class Watchful : public WorkSource {
  public:
    explicit Watchful(const test::FakeArbiter& arbiter) : arbiter_(arbiter) {}
    bool run_one(Worker& worker) override {
        if (left.fetch_sub(1) <= 0) {
            ++left;
            return false;
        }
        worker.found_work();
        if (!arbiter_.may_be_on(worker.cpu())) ++wrong;
        for (int i = 0; i < 10; ++i) std::this_thread::yield();
        if (!arbiter_.may_be_on(worker.cpu())) ++wrong;
        ++done;
        return true;
    }
    bool may_have_work() noexcept override { return left > 0; }
    std::atomic<int> left = 0, done = 0, wrong = 0;

  private:
    const test::FakeArbiter& arbiter_;
};

TEST_F(OutsideTest, PoolsThatLendToEachOtherAndToOthersSurviveAStorm) {
    join(CpuSet::range(0, 4));
    ComponentCpus cpus[] = {{exchange_, "a", {}}, {exchange_, "b", {}}};
    Watchful work[] = {Watchful(*arbiter_), Watchful(*arbiter_)};
    WorkerPoolOptions options;
    options.limits.idle_delay = 30us;
    std::atomic<bool> enough = false;
    {
        WorkerPool pools[] = {{kEight, cpus[0], work[0], options}, {kEight, cpus[1], work[1], options}};
        std::thread others([&] {
            std::mt19937 random(3);
            while (!enough) {
                CpuSet some;
                for (int cpu = 0; cpu < 8; ++cpu)
                    if (random() % 2 == 0) some.insert(cpu);
                if (random() % 2 == 0)
                    arbiter_->grant(some);
                else
                    arbiter_->ask_back(some);
                arbiter_->set_others_wait(random() % 2 == 0);
                arbiter_->set_takers(random() % 4 == 0 ? some : CpuSet{});
                std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
            }
        });
        int brought = 0;
        std::mt19937 random(4);
        for (int round = 0; round < 1500; ++round) {
            const size_t who = random() % 2;
            work[who].left += 3;
            brought += 3;
            pools[who].work_arrived();
            if (random() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
        }
        enough = true;
        others.join();
        arbiter_->set_takers({});
        arbiter_->grant(kEight.cpus());
        EXPECT_TRUE(test::becomes_true([&] { return work[0].done + work[1].done == brought; }, 20s))
            << work[0].done + work[1].done << " of " << brought;
    }
    EXPECT_EQ(work[0].wrong + work[1].wrong, 0);
}

}  // namespace
}  // namespace heddle
