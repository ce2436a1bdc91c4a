// BlockCondition and polling services as they are, under the explorer: a signal is never lost, what was done
// before it is seen after the block, and who has unregistered a service is not called.
#include "heddle/pause.hpp"

#include "heddle/error.hpp"
#include "support/exploring.hpp"
#include "tasks/polling.hpp"

namespace heddle::test {
namespace {

struct Handed {
    BlockCondition condition;
    int data = 0;
};

void expect_data(Explorer& explorer, const Handed& handed, int data) {
    if (handed.data != data) explorer.fail("went on without a signal");
}

void block_and_signal(Explorer& explorer) {
    auto handed = std::make_shared<Handed>();
    explorer.thread([handed, &explorer] {
        handed->condition.block();
        expect_data(explorer, *handed, 1);
    });
    explorer.thread([handed] {
        handed->data = 1;
        handed->condition.signal();
    });
}

/// Round and round, as a task does that waits for one message after the other.
void block_and_signal_in_turns(Explorer& explorer) {
    struct Turns {
        Handed one;
        BlockCondition other;
    };
    auto turns = std::make_shared<Turns>();
    explorer.thread([turns, &explorer] {
        for (int round = 1; round <= 2; ++round) {
            turns->one.condition.block();
            expect_data(explorer, turns->one, round);
            turns->other.signal();
        }
    });
    explorer.thread([turns] {
        for (int round = 1; round <= 2; ++round) {
            turns->one.data = round;
            turns->one.condition.signal();
            turns->other.block();
        }
    });
}

/// Of two that block on one condition one may be told that it must not, and whoever is blocked goes on.
void two_block(Explorer& explorer) {
    struct Two : Handed {
        std::atomic<int> refused{0}, went_on{0};
    };
    auto two = std::make_shared<Two>();
    for (int i = 0; i < 2; ++i)
        explorer.thread([two] {
            try {
                two->condition.block();
                ++two->went_on;
            } catch (const Error&) {
                ++two->refused;
                two->condition.signal();  // the other's
            }
        });
    explorer.finally([two, &explorer] {
        if (two->refused != 1 || two->went_on != 1) explorer.fail("not one of each");
    });
}

struct Polled {
    PollingServices services;
    int calls = 0;
    bool gone = false;
    bool finished = false;
    Explorer* explorer = nullptr;

    static bool call(void* data) {
        auto& self = *static_cast<Polled*>(data);
        if (self.gone) self.explorer->fail("called after it was unregistered");
        ++self.calls;
        return self.finished;
    }
};

void unregister_while_polled(Explorer& explorer) {
    auto polled = std::make_shared<Polled>();
    polled->explorer = &explorer;
    polled->services.add("service", &Polled::call, polled.get());
    for (int i = 0; i < 2; ++i)
        explorer.thread([polled] {
            if (!polled->services.empty()) (void)polled->services.poll();
        });
    explorer.thread([polled] {
        polled->services.remove(&Polled::call, polled.get());
        polled->gone = true;
        ++polled->calls;
    });
}

/// A service that has done its work is registered again while its last call is under way.
void register_again_while_it_ends(Explorer& explorer) {
    auto polled = std::make_shared<Polled>();
    polled->explorer = &explorer;
    polled->finished = true;
    polled->services.add("service", &Polled::call, polled.get());
    explorer.thread([polled] { (void)polled->services.poll(); });
    explorer.thread([polled] {
        try {
            polled->services.add("service", &Polled::call, polled.get());
        } catch (const Error&) {
            return;  // its call had not begun
        }
        while (!polled->services.empty()) (void)polled->services.poll();
    });
    explorer.finally([polled, &explorer] {
        if (!polled->services.empty()) explorer.fail("registered for ever");
    });
}

/// Who sees that no service is left sees what the last one has done.
void see_that_one_has_ended(Explorer& explorer) {
    auto polled = std::make_shared<Polled>();
    polled->explorer = &explorer;
    polled->finished = true;
    polled->services.add("service", &Polled::call, polled.get());
    explorer.thread([polled] { (void)polled->services.poll(); });
    explorer.thread([polled, &explorer] {
        while (!polled->services.empty()) {
        }
        if (polled->calls != 1) explorer.fail("it has ended and was not called");
    });
}

constexpr Bounds kThree{.preemptions = 3, .stale_reads = 2};

TEST(ExploredBlockCondition, ASignalBeforeOrAfterTheBlockEndsIt) {
    expect_holds(block_and_signal, kThree);
    for (const Fault fault :
         {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kPlainCompareExchange, Fault::kLostWakes})
        expect_found(block_and_signal, fault, kThree);
}
TEST(ExploredBlockCondition, MayBeUsedAgain) {
    expect_holds(block_and_signal_in_turns);
    for (const Fault fault :
         {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kPlainCompareExchange, Fault::kLostWakes})
        expect_found(block_and_signal_in_turns, fault);
}
TEST(ExploredBlockCondition, IsForOneAtATime) {
    expect_holds(two_block, kThree);
    for (const Fault fault : {Fault::kPlainCompareExchange, Fault::kLostWakes})
        expect_found(two_block, fault, kThree);
}
TEST(ExploredPolling, NothingIsCalledAfterItWasUnregistered) {
    expect_holds(unregister_while_polled);
    for (const Fault fault : {Fault::kNoLocks, Fault::kLostWakes})
        expect_found(unregister_while_polled, fault);
}
TEST(ExploredPolling, WhatOneHasDoneIsSeenWhenItHasEnded) {
    expect_holds(see_that_one_has_ended);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores})
        expect_found(see_that_one_has_ended, fault);
}
TEST(ExploredPolling, OneThatEndsMayBeRegisteredAgain) {
    expect_holds(register_again_while_it_ends);
    expect_found(register_again_while_it_ends, Fault::kNoLocks);
}

}  // namespace
}  // namespace heddle::test
