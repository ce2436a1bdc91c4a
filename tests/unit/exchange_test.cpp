#include "cores/exchange.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <stdexcept>
#include <string>
#include <thread>

#include "heddle/cores.hpp"
#include "heddle/error.hpp"

namespace {

using namespace heddle;
using testing::ElementsAre;

class Components : public testing::Test {
  protected:
    Exchange exchange_{Machine::synthetic("numa:2 core:2 pu:1")};
    std::vector<std::string> log_;

    void record(Component& component, const std::string& name) {
        component.on_enable_cpu([this, name](int cpu) { log_.push_back(name + "+" + std::to_string(cpu)); });
        component.on_disable_cpu([this, name](int cpu) { log_.push_back(name + "-" + std::to_string(cpu)); });
    }
};

TEST_F(Components, EachChangeIsAnnouncedToWhomItConcerns) {
    Component a(exchange_, "a", {0, 1});
    Component b(exchange_, "b", {2, 3});
    record(a, "a");
    record(b, "b");
    EXPECT_EQ(a.lend_cpu(1), Outcome::kSuccess);
    EXPECT_EQ(b.borrow(), Outcome::kSuccess);
    EXPECT_EQ(a.reclaim(), Outcome::kNoted);
    EXPECT_EQ(a.check_cpu(1), Outcome::kNoted);
    EXPECT_EQ(b.to_return(), CpuSet{1});
    EXPECT_EQ(b.return_all(), Outcome::kSuccess);
    EXPECT_EQ(a.check_cpu(1), Outcome::kSuccess);
    EXPECT_EQ(b.check_cpu(1), Outcome::kPermission);
    EXPECT_THAT(log_, ElementsAre("a-1", "b+1", "b-1", "a+1"));
    EXPECT_EQ(b.usable(), (CpuSet{2, 3}));
}

TEST_F(Components, MasksAndCountsFollow) {
    Component a(exchange_, "a", {0, 1});
    Component b(exchange_, "b", {2});
    b.on_set_num_threads([this](int count) { log_.push_back("threads " + std::to_string(count)); });
    b.on_set_active_mask([this](const CpuSet& cpus) { log_.push_back("mask " + cpus.to_list()); });
    b.on_add_active_mask([this](const CpuSet& cpus) { log_.push_back("add " + cpus.to_list()); });
    EXPECT_EQ(a.lend(), Outcome::kSuccess);
    EXPECT_EQ(b.acquire_cpus(2), Outcome::kSuccess);
    EXPECT_EQ(b.lend_cpus(1), Outcome::kSuccess);
    EXPECT_THAT(log_, ElementsAre("add 0-1", "mask 0-2", "threads 3", "mask 0,2", "threads 2"));
}

TEST_F(Components, ACallbackMayCallBackAndHearsOfItAfterwards) {
    Component a(exchange_, "a", {0, 1});
    Component b(exchange_, "b", {2});
    record(a, "a");
    b.on_enable_cpu([&](int cpu) {
        log_.push_back("b enters " + std::to_string(cpu));
        EXPECT_EQ(b.lend_cpu(cpu), Outcome::kSuccess);
        EXPECT_EQ(a.lend_cpu(0), Outcome::kSuccess) << "another component's callback runs at once";
        log_.push_back("b leaves");
    });
    b.on_disable_cpu([&](int cpu) { log_.push_back("b-" + std::to_string(cpu)); });
    EXPECT_EQ(b.acquire_cpu(1), Outcome::kNoted);
    EXPECT_EQ(a.lend_cpu(1), Outcome::kSuccess);
    EXPECT_THAT(log_, ElementsAre("a-1", "b enters 1", "a-0", "b leaves", "b-1"));
}

TEST_F(Components, WhatUndoesItselfBeforeItCouldBeToldIsNotTold) {
    Component a(exchange_, "a", {0, 1});
    Component b(exchange_, "b", {2});
    int calls = 0;
    b.on_enable_cpu([&](int) {
        if (++calls > 1) return;
        for (int i = 0; i < 1000; ++i) {  // and more than an inbox would hold
            EXPECT_EQ(a.lend_cpu(0), Outcome::kSuccess);
            EXPECT_EQ(b.borrow_cpu(0), Outcome::kSuccess);
            EXPECT_EQ(a.reclaim_cpu(0), Outcome::kNoted);
            EXPECT_EQ(b.return_cpu(0), Outcome::kSuccess);
        }
    });
    b.on_disable_cpu([&](int) { ++calls; });
    EXPECT_EQ(a.lend_cpu(1), Outcome::kSuccess);
    EXPECT_EQ(b.borrow_cpu(1), Outcome::kSuccess);
    EXPECT_EQ(calls, 1);
}

TEST_F(Components, WhatHasToBeReturnedIsToldAlsoToWhoNeverHeardOfIt) {
    Component a(exchange_, "a", {0, 1});
    Component b(exchange_, "b", {2});
    b.on_enable_cpu([&](int cpu) {
        log_.push_back("b+" + std::to_string(cpu));
        if (cpu == 0) return;
        EXPECT_EQ(a.lend_cpu(0), Outcome::kSuccess);
        EXPECT_EQ(b.borrow_cpu(0), Outcome::kSuccess);
        EXPECT_EQ(a.reclaim_cpu(0), Outcome::kNoted);
    });
    b.on_disable_cpu([&](int cpu) {
        log_.push_back("b-" + std::to_string(cpu));
        EXPECT_EQ(b.return_cpu(cpu), Outcome::kSuccess);
    });
    EXPECT_EQ(a.lend_cpu(1), Outcome::kSuccess);
    EXPECT_EQ(b.borrow_cpu(1), Outcome::kSuccess);
    EXPECT_THAT(log_, ElementsAre("b+1", "b+0", "b-0"));
    EXPECT_EQ(a.check_cpu(0), Outcome::kSuccess);
}

/// It may be waiting for a CPU that it lent itself, and that came back before it was told that it had gone.
TEST_F(Components, WhatWentAndCameBackIsTold) {
    Component a(exchange_, "a", {0, 1});
    Component b(exchange_, "b", {2});
    Component c(exchange_, "c", CpuSet());
    EXPECT_EQ(a.lend(), Outcome::kSuccess);
    b.on_enable_cpu([&](int cpu) {
        log_.push_back("b+" + std::to_string(cpu));
        if (cpu == 0) return;
        EXPECT_EQ(b.lend_cpu(0), Outcome::kSuccess);
        EXPECT_EQ(c.borrow_cpu(0), Outcome::kSuccess);
        EXPECT_EQ(b.acquire_cpu(0), Outcome::kNoted);
        EXPECT_EQ(c.lend_cpu(0), Outcome::kSuccess);
    });
    b.on_disable_cpu([&](int cpu) { log_.push_back("b-" + std::to_string(cpu)); });
    EXPECT_EQ(b.borrow_cpu(0), Outcome::kSuccess);
    EXPECT_EQ(b.borrow_cpu(1), Outcome::kSuccess);
    EXPECT_THAT(log_, ElementsAre("b+0", "b+1", "b-0", "b+0"));
}

TEST_F(Components, AComponentMayGoInsideItsOwnCallback) {
    Component a(exchange_, "a", {0, 1});
    auto b = std::make_unique<Component>(exchange_, "b", CpuSet{2});
    b->on_enable_cpu([&, alive = std::make_shared<int>(7)](int cpu) {
        log_.push_back("b+" + std::to_string(cpu));
        b.reset();
        EXPECT_EQ(*alive, 7) << "the callback outlives its component while it runs";
    });
    EXPECT_EQ(a.lend(), Outcome::kSuccess);
    EXPECT_EQ(b->borrow(), Outcome::kSuccess);
    EXPECT_THAT(log_, ElementsAre("b+0")) << "nothing after it has gone";
    EXPECT_EQ(exchange_.ask([](const Ledger& ledger) { return ledger.free_count(); }), 2);
    Component c(exchange_, "c", {2});
    record(c, "c");
    EXPECT_EQ(c.borrow(), Outcome::kSuccess);
    EXPECT_THAT(log_, ElementsAre("b+0", "c+0", "c+1"));
}

TEST_F(Components, ACallbackMayReplaceItself) {
    Component a(exchange_, "a", {0, 1});
    a.on_disable_cpu([&](int cpu) {
        log_.push_back("first " + std::to_string(cpu));
        a.on_disable_cpu([&](int other) { log_.push_back("second " + std::to_string(other)); });
    });
    EXPECT_EQ(a.lend_cpu(0), Outcome::kSuccess);
    EXPECT_EQ(a.lend_cpu(1), Outcome::kSuccess);
    EXPECT_THAT(log_, ElementsAre("first 0", "second 1"));
    EXPECT_EQ(a.on_disable_cpu(nullptr), Outcome::kSuccess);
    EXPECT_EQ(a.reclaim(), Outcome::kSuccess);
    EXPECT_EQ(a.lend(), Outcome::kSuccess);
    EXPECT_EQ(log_.size(), 2U);
}

TEST_F(Components, CallbacksAreGivenBackAsTheyWereSet) {
    Component a(exchange_, "a", {0, 1});
    EXPECT_FALSE(a.enable_cpu_callback() || a.disable_cpu_callback() || a.set_num_threads_callback() ||
                 a.set_active_mask_callback() || a.add_active_mask_callback());
    record(a, "a");
    a.on_set_num_threads([this](int count) { log_.push_back("threads " + std::to_string(count)); });
    a.on_set_active_mask([this](const CpuSet& cpus) { log_.push_back("mask " + cpus.to_list()); });
    a.on_add_active_mask([this](const CpuSet& cpus) { log_.push_back("add " + cpus.to_list()); });
    a.enable_cpu_callback()(7);
    a.disable_cpu_callback()(8);
    a.set_num_threads_callback()(9);
    a.set_active_mask_callback()({3});
    a.add_active_mask_callback()({4});
    EXPECT_THAT(log_, ElementsAre("a+7", "a-8", "threads 9", "mask 3", "add 4"));
    log_.clear();
    a.on_disable_cpu([this, before = a.disable_cpu_callback()](int cpu) {
        log_.push_back("first");
        before(cpu);
    });
    EXPECT_EQ(a.lend_cpu(1), Outcome::kSuccess);
    EXPECT_THAT(log_, ElementsAre("first", "a-1", "mask 0", "threads 1"));
    EXPECT_EQ(a.on_disable_cpu(nullptr), Outcome::kSuccess);
    EXPECT_FALSE(a.disable_cpu_callback());
    EXPECT_TRUE(a.enable_cpu_callback());
    EXPECT_EQ(a.detach(), Outcome::kSuccess);
    EXPECT_FALSE(a.enable_cpu_callback());
}

TEST_F(Components, AnExceptionReachesTheCallerAfterTheRest) {
    Component a(exchange_, "a", {0, 1});
    Component b(exchange_, "b", {2});
    b.on_enable_cpu([&](int cpu) {
        log_.push_back("b+" + std::to_string(cpu));
        throw std::runtime_error("from a callback");
    });
    EXPECT_EQ(b.acquire(), Outcome::kNoted);
    EXPECT_THROW((void)a.lend(), std::runtime_error);
    EXPECT_THAT(log_, ElementsAre("b+0", "b+1"));
    EXPECT_THROW((void)(b.lend_cpu(0), b.borrow()), std::runtime_error) << "and the next works as before";
}

TEST_F(Components, DetachWaitsForACallbackInAnotherThread) {
    Component a(exchange_, "a", {0, 1});
    auto b = std::make_unique<Component>(exchange_, "b", CpuSet{2});
    std::atomic<bool> inside{false}, may_end{false}, ended{false};
    b->on_enable_cpu([&](int) {
        inside = true;
        inside.notify_one();
        may_end.wait(false);
        ended = true;
    });
    EXPECT_EQ(b->acquire_cpu(0), Outcome::kNoted);
    std::thread lender([&] { EXPECT_EQ(a.lend_cpu(0), Outcome::kSuccess); });
    inside.wait(false);
    std::thread helper([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        may_end = true;
        may_end.notify_one();
    });
    b.reset();
    EXPECT_TRUE(ended);
    lender.join();
    helper.join();
}

TEST_F(Components, NobodyWaitsForACallbackOfAnotherComponent) {
    Component owner(exchange_, "owner", {0, 1, 2});
    Component first(exchange_, "first", {});
    auto second = std::make_unique<Component>(exchange_, "second", CpuSet{});
    Component third(exchange_, "third", {});
    record(third, "third");
    second->on_enable_cpu([&](int) { ADD_FAILURE() << "called after it has gone"; });
    first.on_enable_cpu([&](int) {
        // What one call decided is told to one component after the other: these two come later, and meanwhile
        // other threads let one go and make a call for the other.
        std::thread([&] { second.reset(); }).join();
        std::thread([&] { EXPECT_EQ(third.lend_cpu(2), Outcome::kSuccess); }).join();
        log_.push_back("first+");
    });
    EXPECT_EQ(first.acquire_cpu(0), Outcome::kNoted);
    EXPECT_EQ(second->acquire_cpu(1), Outcome::kNoted);
    EXPECT_EQ(third.acquire_cpu(2), Outcome::kNoted);
    EXPECT_EQ(owner.lend(), Outcome::kSuccess);
    EXPECT_THAT(log_, ElementsAre("first+")) << "the third got a CPU and lent it before it was told";
    EXPECT_EQ(third.acquire_cpu(2), Outcome::kSuccess);
    EXPECT_THAT(log_, ElementsAre("first+", "third+2"));
}

TEST_F(Components, AnotherThreadsCallbackIsNotWaitedForButFollowedUp) {
    Component a(exchange_, "a", {0, 1});
    std::atomic<int> inside{0}, most{0};
    std::atomic<bool> may_end{false};
    a.on_disable_cpu([&](int) {
        const int now = ++inside;
        most = std::max(most.load(), now);
        if (now == 1) may_end.wait(false);
        --inside;
        log_.push_back("a-");
    });
    std::thread first([&] { EXPECT_EQ(a.lend_cpu(0), Outcome::kSuccess); });
    while (inside == 0) std::this_thread::yield();
    EXPECT_EQ(a.lend_cpu(1), Outcome::kSuccess) << "returns although the first callback has not";
    may_end = true;
    may_end.notify_all();
    first.join();
    EXPECT_EQ(most, 1) << "one callback of a component at a time";
    EXPECT_EQ(log_.size(), 2U);
}

TEST_F(Components, BadInputIsRefused) {
    Component a(exchange_, "a", {0, 1});
    EXPECT_THROW(Component(exchange_, "b", {1}), Error);
    EXPECT_THROW(Component(exchange_, "b", {9}), Error);
    for (const int cpu : {-1, 4, 1 << 20}) {
        EXPECT_EQ(a.lend_cpu(cpu), Outcome::kPermission);
        EXPECT_EQ(a.reclaim_cpu(cpu), Outcome::kPermission);
        EXPECT_EQ(a.acquire_cpu(cpu), Outcome::kPermission);
        EXPECT_EQ(a.borrow_cpu(cpu), Outcome::kPermission);
        EXPECT_EQ(a.return_cpu(cpu), Outcome::kPermission);
        EXPECT_EQ(a.check_cpu(cpu), Outcome::kPermission);
    }
    EXPECT_EQ(a.borrow_cpus(-1), Outcome::kPermission);
    EXPECT_EQ(a.borrow_cpu_mask({0, 9}), Outcome::kPermission);
    EXPECT_EQ(a.set_max_parallelism(-1), Outcome::kPermission);
    Component moved = std::move(a);
    EXPECT_EQ(moved.lend_cpu(0), Outcome::kSuccess);
    EXPECT_EQ(a.lend_cpu(0), Outcome::kPermission);  // NOLINT(bugprone-use-after-move): what it promises
    EXPECT_EQ(moved.detach(), Outcome::kSuccess);
    EXPECT_EQ(moved.detach(), Outcome::kPermission);
    EXPECT_EQ(moved.borrow(), Outcome::kPermission);
    EXPECT_EQ(moved.on_enable_cpu([](int) {}), Outcome::kPermission);
    EXPECT_TRUE(moved.usable().empty());
}

TEST_F(Components, OneThatIsMovedToItselfStaysAttached) {
    Component a(exchange_, "a", {0, 1});
    Component& same = a;
    a = std::move(same);
    EXPECT_EQ(a.usable(), (CpuSet{0, 1}));
}

TEST_F(Components, ABorrowThatFailsSaysWhy) {
    Component a(exchange_, "a", {0, 1});
    Component b(exchange_, "b", {2});
    EXPECT_EQ(b.borrow(), Outcome::kNoUpdate);
    EXPECT_EQ(b.disable(), Outcome::kSuccess);
    EXPECT_EQ(b.borrow(), Outcome::kDisabled);
    EXPECT_EQ(b.borrow_cpu(0), Outcome::kDisabled);
    EXPECT_EQ(b.enable(), Outcome::kSuccess);
    EXPECT_EQ(b.borrow_cpus(1), Outcome::kNoUpdate);
    EXPECT_EQ(a.lend_cpu(0), Outcome::kSuccess);
    EXPECT_EQ(b.borrow_cpu(1), Outcome::kNoUpdate);
    EXPECT_EQ(b.borrow_cpus(1), Outcome::kSuccess);
}

TEST(ExchangeAttach, WhoCannotBeTakenInForAnothersExceptionIsNotThere) {
    Exchange exchange(Machine::synthetic("core:4 pu:1"));
    exchange.lend_unowned(CpuSet::range(0, 4));
    Component guest(exchange, "guest", {});
    ASSERT_EQ(guest.borrow_cpu(2), Outcome::kSuccess);
    (void)guest.on_disable_cpu([](int) { throw std::runtime_error("cannot leave"); });
    EXPECT_THROW(Component(exchange, "owner", {2}), std::runtime_error);
    (void)guest.on_disable_cpu({});
    EXPECT_NO_THROW(Component(exchange, "owner", {2})) << "nobody owns it";
}

}  // namespace
