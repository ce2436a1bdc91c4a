// A pool on the CPUs that an arbiter lets it use: what it gives back, takes back, and leaves between items.
#include "cores/arbiter_cpus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <random>
#include <thread>

#include "base/clock.hpp"
#include "base/spin_pause.hpp"
#include "cores/worker_pool.hpp"
#include "support/fake_link.hpp"
#include "support/wait_until.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;
using test::becomes_true;
using State = test::FakeArbiter::State;
using testing::ElementsAre;

const Machine kEight = Machine::synthetic("package:2 core:2 pu:2");

/// So many items, each of which lasts until it is let go.
class Gate : public WorkSource {
  public:
    bool run_one(Worker& worker) override {
        if (left_.fetch_sub(1) <= 0) {
            ++left_;
            return false;
        }
        worker.found_work();
        ++inside;
        while (passes_.fetch_sub(1) <= 0) {
            ++passes_;
            std::this_thread::sleep_for(100us);
        }
        --inside;
        ++done;
        return true;
    }
    bool may_have_work() noexcept override { return left_ > 0; }

    void bring(WorkerPool& pool, int items) {
        left_ += items;
        pool.work_arrived();
    }
    void let_go(int items) { passes_ += items; }
    std::atomic<int> inside = 0, done = 0;

  private:
    std::atomic<int> left_ = 0, passes_ = 0;
};

WorkerPoolOptions quick(Nanoseconds idle_delay) {
    WorkerPoolOptions options;
    options.limits.idle_delay = idle_delay;
    options.on_failure = [](const std::exception_ptr&) { ADD_FAILURE() << "something failed in the pool"; };
    return options;
}

class ArbiterCpusTest : public testing::Test {
  protected:
    void start(const CpuSet& held, Nanoseconds idle_delay = 1ms) {
        arbiter_ = std::make_unique<test::FakeArbiter>(held);
        cpus_ = std::make_unique<ArbiterCpus>(
            kEight,
            [this](ArbiterLink::Callbacks callbacks) { return arbiter_->connect(std::move(callbacks)); },
            name_);
        pool_ = std::make_unique<WorkerPool>(kEight, *cpus_, gate_, quick(idle_delay));
    }
    [[nodiscard]] bool comes_to(State state, const CpuSet& cpus) const {
        return becomes_true([&] { return arbiter_->in(state) == cpus; }, 10s);
    }
    [[nodiscard]] bool works_on(int cpus) const {
        return becomes_true([&] { return gate_.inside == cpus; }, 10s);
    }
    ~ArbiterCpusTest() override { gate_.let_go(1 << 20); }

    Gate gate_;
    std::unique_ptr<test::FakeArbiter> arbiter_;
    std::string name_;
    std::unique_ptr<ArbiterCpus> cpus_;
    std::unique_ptr<WorkerPool> pool_;
};

/// The pool may be on it since start() returned, so it is not the provider's to lend.
TEST(ArbiterCpusStart, WhatItFoundHeldAndThenHearsOfIsThePools) {
    test::FakeArbiter arbiter(CpuSet::range(0, 3));
    std::thread telling;
    ArbiterCpus cpus(kEight, [&](ArbiterLink::Callbacks callbacks) {
        auto link = arbiter.connect(std::move(callbacks));
        telling = std::thread([&] { arbiter.grant({3}); });
        while (!arbiter.in(State::kHeld).contains(3)) std::this_thread::yield();
        return link;
    });
    cpus.start([] {});
    telling.join();
    EXPECT_EQ(cpus.usable(), CpuSet::range(0, 4));
    EXPECT_EQ(arbiter.in(State::kHeld), CpuSet::range(0, 4));
    cpus.stop();
}

TEST_F(ArbiterCpusTest, WithoutWorkItGivesAllBackAndWantsNothing) {
    start(CpuSet::range(0, 4));
    EXPECT_TRUE(comes_to(State::kLent, CpuSet::range(0, 4)));
    EXPECT_TRUE(becomes_true([&] { return arbiter_->demand() == 0; }, 10s));
    EXPECT_EQ(cpus_->usable(), CpuSet{});
}

TEST_F(ArbiterCpusTest, DemandIsLoweredBeforeACpuIsGivenBack) {
    start({0});
    ASSERT_TRUE(comes_to(State::kLent, {0}));
    EXPECT_THAT(arbiter_->said(), ElementsAre("demand 1", "demand 0", "lend 0"));
}

TEST_F(ArbiterCpusTest, TakesBackWhatNobodyTookWithoutTheArbiter) {
    start(CpuSet::range(0, 4));
    ASSERT_TRUE(comes_to(State::kLent, CpuSet::range(0, 4)));
    gate_.bring(*pool_, 10);
    EXPECT_TRUE(works_on(4));
    EXPECT_EQ(arbiter_->in(State::kHeld), CpuSet::range(0, 4));
    EXPECT_EQ(arbiter_->demand(), 5) << "one more than it has";
}

TEST_F(ArbiterCpusTest, TheArbiterSeesWhereANamedPoolIs) {
    using Shown = std::vector<ShownComponent>;
    name_ = "weavers";
    start({0, 1, 2, 3});
    gate_.bring(*pool_, 2);
    ASSERT_TRUE(works_on(2));
    EXPECT_TRUE(becomes_true([&] { return arbiter_->components() == Shown{{"weavers", {0, 1}}}; }, 10s));
    gate_.let_go(2);
    EXPECT_TRUE(becomes_true([&] { return arbiter_->components().empty(); }, 10s));
    pool_.reset();
    EXPECT_EQ(arbiter_->components(), Shown{});
}

TEST_F(ArbiterCpusTest, TakesTheNearestFirst) {
    start(kEight.cpus());
    ASSERT_TRUE(comes_to(State::kLent, kEight.cpus()));
    gate_.bring(*pool_, 2);
    ASSERT_TRUE(works_on(2));
    const CpuSet used = arbiter_->in(State::kHeld);
    EXPECT_LE(kEight.distance(used.first(), used.next(used.first())), 2);
}

TEST_F(ArbiterCpusTest, GrowsWithWhatItIsGrantedAsFarAsItHasWork) {
    start({0});
    gate_.bring(*pool_, 4);
    ASSERT_TRUE(works_on(1));
    EXPECT_TRUE(becomes_true([&] { return arbiter_->demand() == 2; }, 10s));
    arbiter_->grant({4, 5});
    EXPECT_TRUE(works_on(3)) << "one more, and then one more";
    arbiter_->grant({1, 6, 7});
    EXPECT_TRUE(works_on(4));
    EXPECT_TRUE(becomes_true([&] { return arbiter_->in(State::kHeld).count() == 4; }, 10s))
        << "the one that found no more work has given its CPU back";
}

TEST_F(ArbiterCpusTest, WhatItIsGrantedUnaskedIsForOthers) {
    start({0}, 1h);
    gate_.bring(*pool_, 1);
    ASSERT_TRUE(works_on(1));
    arbiter_->ask_back(CpuSet::range(1, 8));
    arbiter_->grant(CpuSet::range(1, 8));
    EXPECT_TRUE(becomes_true([&] { return arbiter_->in(State::kLent).count() >= 6; }, 10s));
    EXPECT_TRUE(arbiter_->may_be_on(0));
}

TEST_F(ArbiterCpusTest, ACpuThatIsAskedBackIsLeftAfterTheItem) {
    start({0, 1});
    gate_.bring(*pool_, 20);
    ASSERT_TRUE(works_on(2));
    arbiter_->ask_back({1});
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(arbiter_->in(State::kLeaving), CpuSet{1}) << "its item still runs";
    gate_.let_go(20);
    EXPECT_TRUE(comes_to(State::kAway, {1}));
    EXPECT_TRUE(becomes_true([&] { return gate_.done == 20; }, 10s)) << "no item was lost";
}

TEST_F(ArbiterCpusTest, ACpuWithoutWorkIsLeftAtOnce) {
    start({0, 1}, 1h);
    gate_.bring(*pool_, 2);
    ASSERT_TRUE(works_on(2));
    gate_.let_go(2);
    ASSERT_TRUE(becomes_true([&] { return pool_->busy() == 0; }, 10s));
    arbiter_->ask_back({0, 1});
    EXPECT_TRUE(comes_to(State::kAway, {0, 1}));
}

TEST_F(ArbiterCpusTest, WhatSomebodyTookComesBackByDemand) {
    start({0, 1});
    ASSERT_TRUE(comes_to(State::kLent, {0, 1}));
    arbiter_->ask_back({0, 1});
    gate_.bring(*pool_, 2);
    EXPECT_TRUE(becomes_true([&] { return arbiter_->demand() == 1; }, 10s));
    EXPECT_EQ(gate_.inside, 0);
    arbiter_->grant({1});
    EXPECT_TRUE(works_on(1));
    EXPECT_TRUE(becomes_true([&] { return arbiter_->demand() == 2; }, 10s));
}

TEST_F(ArbiterCpusTest, ACpuThatCameBackBeforeItWasLeftIsKept) {
    start({0}, 1h);
    gate_.bring(*pool_, 2);
    ASSERT_TRUE(works_on(1));
    arbiter_->ask_back({0});
    arbiter_->grant({0});
    gate_.let_go(1);
    ASSERT_TRUE(becomes_true([&] { return gate_.done == 1; }, 10s));
    EXPECT_TRUE(works_on(1));
    EXPECT_EQ(arbiter_->in(State::kHeld), CpuSet{0});
}

TEST_F(ArbiterCpusTest, AfterTheEndNothingIsHeard) {
    start({0, 1});
    pool_.reset();
    arbiter_->forget();
    arbiter_->grant({4});
    arbiter_->ask_back({0});
    EXPECT_TRUE(arbiter_->said().empty());
    EXPECT_FALSE(cpus_->managed());
}

TEST(ArbiterCpus, IsNeverOnACpuThatItMayNotBeOn) {
    struct Items : WorkSource {
        explicit Items(const test::FakeArbiter& with) : arbiter(with) {}
        bool run_one(Worker& worker) override {
            if (left.fetch_sub(1) <= 0) {
                ++left;
                return false;
            }
            worker.found_work();
            const int cpu = worker.cpu();
            if (!arbiter.may_be_on(cpu)) ++wrong;
            // Long enough for a change to come between; seldom by giving the turn away, which takes long on a
            // busy machine.
            if (done % 8 == 0) std::this_thread::yield();
            const Time begun = SteadyClock().now();
            while (SteadyClock().now() - begun < 20us) spin_pause();
            if (!arbiter.may_be_on(cpu)) ++wrong;
            ++done;
            return true;
        }
        bool may_have_work() noexcept override { return left > 0; }
        const test::FakeArbiter& arbiter;
        std::atomic<int> left = 0, done = 0, wrong = 0;
    };
    test::FakeArbiter arbiter(CpuSet::range(0, 4));
    Items items(arbiter);
    ArbiterCpus cpus(kEight, [&](ArbiterLink::Callbacks c) { return arbiter.connect(std::move(c)); });
    WorkerPool pool(kEight, cpus, items, quick(50us));
    std::atomic<bool> enough = false;
    std::thread others([&] {
        std::mt19937 random(7);
        while (!enough) {
            CpuSet some;
            for (int cpu = 0; cpu < 8; ++cpu)
                if (random() % 2 == 0) some.insert(cpu);
            if (random() % 2 == 0)
                arbiter.grant(some);
            else
                arbiter.ask_back(some);
            arbiter.set_takers(random() % 4 == 0 ? some : CpuSet{});
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
        }
    });
    int brought = 0;
    std::mt19937 random(8);
    for (int round = 0; round < 1500; ++round) {
        const int more = static_cast<int>(random() % 6);
        brought += more;
        items.left += more;
        pool.work_arrived();
        if (random() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
    }
    enough = true;
    others.join();
    arbiter.set_takers({});
    arbiter.grant(kEight.cpus());
    EXPECT_TRUE(becomes_true([&] { return items.done == brought; }, 20s)) << items.done << " of " << brought;
    EXPECT_EQ(items.wrong, 0);
    pool.stop();
}

}  // namespace
}  // namespace heddle
