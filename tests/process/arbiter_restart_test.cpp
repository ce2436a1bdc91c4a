// What an ArbiterClient does around the death of its arbiter, at moments that only a scripted one can choose.
// docs/models/handover.pml found the first case, docs/models/grant_page.pml the second.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <optional>
#include <thread>

#include "cores/arbiter_client.hpp"
#include "support/scripted_arbiter.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;
using test::becomes_true;
using test::ScriptedArbiter;
using test::SharedPage;

constexpr uint32_t kMe = 7, kLender = 9;

class ArbiterRestart : public testing::Test {
  protected:
    ArbiterRestart() { path_ = folder_.path() + "/socket"; }
    ~ArbiterRestart() override { client_.reset(); }
    /// The client registers with an arbiter that grants it CPU 0.
    void start(std::optional<ScriptedArbiter>& arbiter) {
        arbiter.emplace(path_);
        arbiter->grant->mask[0] = 1;
        arbiter->grant->count = 1;
        arbiter->grant->successor[0] = heddle_word(1, 0);
        arbiter->grant->epoch = 2;
        ArbiterClientOptions options;
        options.name = "test";
        options.demand = 2;
        options.allowed = {0, 1};
        options.path = path_;
        ArbiterClient::Callbacks callbacks;
        callbacks.asked_back = [this](const CpuSet& cpus) { asked_back_ = cpus.contains(0); };
        auto opened = std::async(std::launch::async, [&] { client_.emplace(options, callbacks); });
        heddle_hello hello;
        ASSERT_TRUE(arbiter->receive_hello(hello) && arbiter->welcome(kMe));
        opened.get();
        ASSERT_TRUE(client_->holds(0));
    }

    test::TemporaryFolder folder_;
    std::string path_;
    std::atomic<bool> asked_back_{false};
    std::optional<ArbiterClient> client_;
};

TEST_F(ArbiterRestart, NothingMovesByOldPagesAfterTheNewArbiterWasToldWhatIsHeld) {
    std::optional<ScriptedArbiter> old;
    start(old);
    SharedPage<heddle_client_page> lender;
    old->grant->lender[1] = heddle_word(5, kLender);
    ASSERT_TRUE(old->introduce(kLender, lender.descriptor()));

    old.reset();
    ScriptedArbiter fresh(path_);
    heddle_hello hello;
    ASSERT_TRUE(fresh.receive_hello(hello));
    EXPECT_EQ(cpus_of(hello.held), CpuSet{0});
    // Between HELLO and WELCOME. The lender does not know yet that the arbiter is gone.
    lender->release[1] = heddle_word(5, kMe);
    EXPECT_FALSE(client_->take(1)) << "the new arbiter thinks that this CPU is free";
    EXPECT_EQ(client_->lend(0), ArbiterClient::Lent::kLent);
    EXPECT_TRUE(client_->reclaim(0)) << "the new arbiter thinks that it is ours";

    fresh.grant->mask[0] = 1;
    fresh.grant->successor[0] = heddle_word(1, 0);
    fresh.grant->epoch = 2;
    ASSERT_TRUE(fresh.welcome(kMe));
    EXPECT_TRUE(becomes_true([&] { return client_->managed(); }, 2s));
    EXPECT_EQ(client_->held(), CpuSet{0});
}

TEST_F(ArbiterRestart, WhatWasLentIsTheNewArbitersOnceItWasNotNamedAsHeld) {
    std::optional<ScriptedArbiter> old;
    start(old);
    ASSERT_EQ(client_->lend(0), ArbiterClient::Lent::kLent);
    old.reset();
    ASSERT_TRUE(becomes_true([&] { return !client_->managed(); }, 2s));
    {
        ScriptedArbiter fresh(path_);
        heddle_hello hello;
        ASSERT_TRUE(fresh.receive_hello(hello));
        EXPECT_EQ(cpus_of(hello.held), CpuSet{});
        EXPECT_FALSE(client_->reclaim(0)) << "it may be another's by now";
    }  // it dies before it answers
    EXPECT_TRUE(becomes_true([&] { return client_->holds(0); }, 2s))
        << "nobody has it, and it was wanted back";
}

TEST_F(ArbiterRestart, WhatIsNotLeftYetIsClaimedUnlessAFenceHasEndedIt) {
    for (const bool fenced : {false, true}) {
        client_.reset();
        std::optional<ScriptedArbiter> old;
        start(old);
        old->grant->leaving = 1;
        old->grant->mask[0] = 0;
        old->grant->count = 0;
        old->grant->epoch = 4;
        ASSERT_TRUE(old->say_changed());
        ASSERT_TRUE(becomes_true([&] { return !client_->holds(0); }, 2s));
        if (fenced) old->grant->successor[0] = heddle_word(1, HEDDLE_TAKEN);
        old.reset();
        ScriptedArbiter fresh(path_);
        heddle_hello hello;
        ASSERT_TRUE(fresh.receive_hello(hello));
        EXPECT_EQ(cpus_of(hello.held), fenced ? CpuSet{} : CpuSet{0});
    }
}

TEST_F(ArbiterRestart, WhatAFenceEndedUnseenIsAskedBack) {
    std::optional<ScriptedArbiter> old;
    start(old);
    old->grant->successor[0] = heddle_word(1, HEDDLE_TAKEN);
    old.reset();
    EXPECT_TRUE(becomes_true([&] { return !client_->holds(0); }, 2s));
    EXPECT_TRUE(becomes_true([&] { return asked_back_.load(); }, 2s));
}

TEST_F(ArbiterRestart, WhatTheArbiterTookBeforeItDiedIsNotTakenBack) {
    std::optional<ScriptedArbiter> old;
    start(old);
    ASSERT_EQ(client_->lend(0), ArbiterClient::Lent::kLent);
    old->page->release[0] = heddle_word(1, HEDDLE_TAKEN);  // and it was killed before it said so
    old.reset();
    ASSERT_TRUE(becomes_true([&] { return !client_->managed(); }, 2s));
    EXPECT_FALSE(client_->reclaim(0)) << "it is another's by now";
}

TEST_F(ArbiterRestart, ItComesBackWhereItsFolderWasMadeAnew) {
    const std::string own = folder_.path() + "/own";
    path_ = own + "/socket";
    std::filesystem::create_directory(own);
    std::optional<ScriptedArbiter> old;
    start(old);
    old.reset();
    std::filesystem::remove_all(own);
    ASSERT_TRUE(becomes_true([&] { return !client_->managed(); }, 2s));
    std::this_thread::sleep_for(50ms);  // it watches the new folder, or nothing
    std::filesystem::create_directory(own);
    ScriptedArbiter fresh(path_);
    heddle_hello hello;
    EXPECT_TRUE(fresh.receive_hello(hello)) << "it waits for a folder that is gone";
}

/// Nothing is made in its folder any more that would wake the client.
TEST_F(ArbiterRestart, WhomItDoesNotTakeInAsksAgain) {
    std::optional<ScriptedArbiter> old;
    start(old);
    old.reset();
    ScriptedArbiter fresh(path_);
    heddle_hello hello;
    ASSERT_TRUE(fresh.receive_hello(hello));
    ASSERT_TRUE(fresh.refuse(HEDDLE_REFUSED_FULL));
    ASSERT_TRUE(fresh.receive_hello(hello)) << "it does not ask again";
    EXPECT_EQ(cpus_of(hello.held), CpuSet{0});
    fresh.grant->mask[0] = 1;
    fresh.grant->epoch = 2;
    ASSERT_TRUE(fresh.welcome(kMe));
    EXPECT_TRUE(becomes_true([&] { return client_->managed(); }, 2s));
}

TEST_F(ArbiterRestart, AGrantThatIsNeverFinishedHoldsUpNobody) {
    std::optional<ScriptedArbiter> arbiter;
    start(arbiter);
    ASSERT_EQ(client_->lend(0), ArbiterClient::Lent::kLent);
    arbiter->grant->epoch = 3;  // it was killed half way through the next grant
    ASSERT_TRUE(arbiter->say_changed());
    auto reclaimed = std::async(std::launch::async, [&] { return client_->reclaim(0); });
    const bool returned = reclaimed.wait_for(5s) == std::future_status::ready;
    EXPECT_TRUE(returned);
    if (!returned) arbiter->grant->epoch = 4;  // so that the test itself ends
    EXPECT_FALSE(reclaimed.get()) << "nobody knows whether it was asked back";
    arbiter->grant->epoch = 4;
    ASSERT_TRUE(arbiter->say_changed());
}

}  // namespace
}  // namespace heddle
