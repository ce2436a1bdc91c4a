// Seed 000, section 2.2.3, a test a sentence, on every engine. docs/PAUSING.md has them in the section's
// order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "support/engines.hpp"

namespace heddle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// On one worker, so that whoever keeps it holds up all others.
class PausingRules : public test::OnEachEngine {
  protected:
    void SetUp() override {
        OnEachEngine::SetUp();
        if (IsSkipped()) return;
        runtime_.emplace(options(1));
        sequence_.emplace(*runtime_);
    }
    /// A service with data of its own that counts its calls, and is done with the `last_call`th.
    struct Service {
        std::atomic<int> calls{0};
        int last_call = 0;  // 0: never
        BlockCondition done;
        static bool call(void* data) {
            auto& self = *static_cast<Service*>(data);
            if (++self.calls != self.last_call) return false;
            self.done.signal();
            return true;
        }
    };
    /// Until idle workers have called a service of the test's own so often.
    void wait_for_idle_workers(int calls) {
        Service service;
        service.last_call = calls;
        register_polling_service(*runtime_, "idle", &Service::call, &service);
        service.done.block();
    }

    std::optional<Runtime> runtime_;
    std::optional<Sequence> sequence_;
};
INSTANTIATE_TEST_SUITE_P(Engines, PausingRules, test::engines(), test::engine_name);

TEST_P(PausingRules, BlocksAndSignalsAreConcurrent) {
    constexpr int kTasks = 8, kRounds = 50;
    std::vector<BlockCondition> conditions(kTasks);
    std::vector<std::atomic<bool>> asked(kTasks);
    std::atomic<int> left{kTasks};
    for (size_t i = 0; i < kTasks; ++i)
        sequence_->insert([&, i] {
            for (int round = 0; round < kRounds; ++round) {
                asked[i] = true;  // the signal may come before the block, or after it
                conditions[i].block();
            }
            --left;
        });
    std::jthread signaller([&] {
        for (size_t i = 0; left > 0; i = (i + 3) % kTasks)
            if (asked[i].exchange(false)) conditions[i].signal();
    });
    sequence_->wait();
}

TEST_P(PausingRules, AfterOneBlockAndOneSignalAConditionIsAsNew) {
    BlockCondition condition;
    for (int cycle = 0; cycle < 3; ++cycle) {
        sequence_->insert([&] { condition.block(); });
        condition.signal();
        sequence_->wait();
    }
}

TEST_P(PausingRules, ABlockLastsUntilTheSignal) {
    BlockCondition condition;
    std::atomic<bool> signalled{false}, went_on_early{false};
    sequence_->insert([&] {
        condition.block();
        went_on_early = !signalled;
    });
    wait_for_idle_workers(20);
    signalled = true;
    condition.signal();
    sequence_->wait();
    EXPECT_FALSE(went_on_early);
}

TEST_P(PausingRules, OtherTasksMayRunInsideABlock) {
    BlockCondition condition;
    bool other_ran = false;
    sequence_->insert([&] {
        condition.block();
        EXPECT_TRUE(other_ran);
    });
    sequence_->insert([&] {
        other_ran = true;
        condition.signal();
    });
    sequence_->wait();
}

TEST_P(PausingRules, WithoutASignalTheTaskIsSuspendedAndItsCpuYielded) {
    BlockCondition condition;
    std::atomic<int> others{0};
    Sequence blocked(*runtime_);
    blocked.insert([&] { condition.block(); });
    for (int i = 0; i < 100; ++i) sequence_->insert([&] { ++others; });
    sequence_->wait();  // though the one worker's task is blocked
    EXPECT_EQ(others, 100);
    condition.signal();
    blocked.wait();
}

TEST_P(PausingRules, ASignalBeforeTheBlockLetsTheTaskGoOn) {
    BlockCondition condition;
    int order = 0;
    condition.signal();
    sequence_->insert([&] {
        condition.block();
        EXPECT_EQ(order++, 0);
    });
    sequence_->wait();
    EXPECT_EQ(order, 1);
}

TEST_P(PausingRules, OnlyOneSignalMayPrecedeTheBlock) {
    BlockCondition condition;
    condition.signal();
    EXPECT_THAT([&] { condition.signal(); }, ThrowsMessage<Error>(HasSubstr("signalled already")));
    sequence_->insert([&] { condition.block(); });
    sequence_->wait();
}

TEST_P(PausingRules, ASignalReturnsBeforeTheTaskHasGoneOn) {
    BlockCondition condition;
    std::atomic<bool> may_end{false}, ended{false};
    sequence_->insert([&] {
        condition.block();
        while (!may_end) std::this_thread::yield();
        ended = true;
    });
    condition.signal();  // would hang here, were it to wait for the task
    EXPECT_FALSE(ended);
    may_end = true;
    sequence_->wait();
    EXPECT_TRUE(ended);
}

TEST_P(PausingRules, AnyThreadAndAnyTaskMaySignal) {
    std::vector<BlockCondition> conditions(3);
    for (BlockCondition& condition : conditions) sequence_->insert([&] { condition.block(); });
    conditions[0].signal();
    std::jthread([&] { conditions[1].signal(); }).join();
    sequence_->insert([&] { conditions[2].signal(); });
    sequence_->wait();
}

TEST_P(PausingRules, AServiceIsCalledPeriodicallyWithItsDataWhileWorkersAreIdle) {
    wait_for_idle_workers(30);
    Service service;
    register_polling_service(*runtime_, "service", &Service::call, &service);
    wait_for_idle_workers(30);
    const int before = service.calls;
    EXPECT_GT(before, 0);
    wait_for_idle_workers(30);
    EXPECT_GT(service.calls, before);
    unregister_polling_service(*runtime_, &Service::call, &service);
}

TEST_P(PausingRules, OneThatReturnedTrueIsNotCalledAgain) {
    Service service;
    service.last_call = 3;
    register_polling_service(*runtime_, "service", &Service::call, &service);
    sequence_->insert([&] { service.done.block(); });
    sequence_->wait();
    wait_for_idle_workers(10);
    EXPECT_EQ(service.calls, 3);
    EXPECT_THAT([&] { unregister_polling_service(*runtime_, &Service::call, &service); },
                ThrowsMessage<Error>(HasSubstr("has returned true")));
}

TEST_P(PausingRules, AFunctionIsRegisteredOnceForEachData) {
    Service one, other;
    one.last_call = 2;
    register_polling_service(*runtime_, "service", &Service::call, &one);
    register_polling_service(*runtime_, "service", &Service::call, &other);
    EXPECT_THAT([&] { register_polling_service(*runtime_, "again", &Service::call, &other); },
                ThrowsMessage<Error>(HasSubstr("registered with these data already")));
    one.done.block();
    const int before = other.calls;
    wait_for_idle_workers(10);
    EXPECT_EQ(one.calls, 2);
    EXPECT_GT(other.calls, before);  // the end of one is not the other's
    unregister_polling_service(*runtime_, &Service::call, &other);
}

TEST_P(PausingRules, ItIsCalledUntilItIsUnregistered) {
    Service service;
    register_polling_service(*runtime_, "service", &Service::call, &service);
    wait_for_idle_workers(10);
    EXPECT_GT(service.calls, 0);
    unregister_polling_service(*runtime_, &Service::call, &service);
    const int calls = service.calls;
    wait_for_idle_workers(10);
    EXPECT_EQ(service.calls, calls);
}

TEST_P(PausingRules, OneThatWasNeverRegisteredCannotBeUnregistered) {
    Service service;
    EXPECT_THAT([&] { unregister_polling_service(*runtime_, &Service::call, &service); },
                ThrowsMessage<Error>(HasSubstr("not registered")));
    EXPECT_THAT([&] { register_polling_service(*runtime_, "nothing", nullptr, &service); },
                ThrowsMessage<Error>(HasSubstr("is null")));
}

/// Not a sentence of the seed's: what a library does that polls while something is pending.
TEST_P(PausingRules, AServiceMayRegisterItselfAgainInItsLastCall) {
    struct Again {
        Runtime* runtime;
        std::atomic<int> calls{0};
        BlockCondition done;
        static bool call(void* data) {
            auto& self = *static_cast<Again*>(data);
            if (++self.calls == 2) {
                self.done.signal();
                return true;
            }
            register_polling_service(*self.runtime, "again", &Again::call, data);
            return true;
        }
    } again{&*runtime_, {}, {}};
    register_polling_service(*runtime_, "again", &Again::call, &again);
    again.done.block();
    wait_for_idle_workers(10);
    EXPECT_EQ(again.calls, 2);
}

/// None of these could ever end.
TEST_P(PausingRules, AServiceThatWaitsForWhatItKeepsFromHappeningIsTold) {
    struct Mistaken {
        Runtime* runtime;
        Sequence* sequence;
        std::vector<std::string> told{};
        BlockCondition never{}, done{};

        void attempt(const std::function<void()>& what) {
            try {
                what();
                told.emplace_back();
            } catch (const Error& error) {
                told.emplace_back(error.code() == ErrorCode::kInvalidArgument ? error.what() : "");
            }
        }
        static bool call(void* data) {
            auto& self = *static_cast<Mistaken*>(data);
            self.attempt([&] { unregister_polling_service(*self.runtime, &Mistaken::call, data); });
            self.attempt([&] { self.runtime->switch_engine("native"); });
            self.attempt([&] { self.sequence->wait(); });
            self.attempt([&] { self.runtime->wait(); });
            self.done.signal();
            return true;
        }
    } mistaken{&*runtime_, &*sequence_};
    sequence_->insert([&] { mistaken.never.block(); });
    register_polling_service(*runtime_, "mistaken", &Mistaken::call, &mistaken);
    mistaken.done.block();
    mistaken.never.signal();
    sequence_->wait();
    EXPECT_THAT(mistaken.told,
                testing::ElementsAre(HasSubstr("returns true instead"), HasSubstr("let another thread do it"),
                                     HasSubstr("cannot wait for tasks"), HasSubstr("cannot wait for tasks")));
}

}  // namespace
}  // namespace heddle
