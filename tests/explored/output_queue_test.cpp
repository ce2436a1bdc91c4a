// OutputQueue under the explorer: of several that pull each gets a record where there are as many, however
// they come, and one that may not wait takes nobody else's.
#include "streams/output_queue.hpp"

#include "heddle/error.hpp"
#include "refused_here.hpp"
#include "support/exploring.hpp"

namespace heddle::test {
namespace {

using streams::Flow;
using streams::OutputQueue;
using streams::Pressure;
using streams::Record;

struct World {
    World() { queue.attach(pressure); }
    void bring() {
        Flow flow;
        queue.take(Record(), flow);
    }
    void pull() {
        if (queue.pull([this] { return ended.load(std::memory_order_acquire); })) ++pulled;
    }
    /// As a network that was closed, and is quiet then.
    void end() {
        ended.store(true, std::memory_order_release);
        queue.wake_all();
    }

    Pressure pressure;
    OutputQueue queue{8};
    std::atomic<bool> ended{false};
    std::atomic<int> pulled{0};
};

void two_pull(Explorer& explorer) {
    auto world = std::make_shared<World>();
    explorer.thread([world] {
        world->bring();
        world->bring();
    });
    for (int i = 0; i < 2; ++i) explorer.thread([world] { world->pull(); });
    explorer.finally([world, &explorer] {
        if (world->pulled != 2) explorer.fail("a record is lost");
    });
}

void it_ends(Explorer& explorer) {
    auto world = std::make_shared<World>();
    explorer.thread([world] {
        world->bring();
        world->end();
    });
    for (int i = 0; i < 2; ++i) explorer.thread([world] { world->pull(); });
    explorer.finally([world, &explorer] {
        if (world->pulled != 1) explorer.fail("a record is lost");
    });
}

/// The one record is the other's.
void one_is_refused(Explorer& explorer) {
    auto world = std::make_shared<World>();
    explorer.thread([world] { world->bring(); });
    explorer.thread([world] { world->pull(); });
    explorer.thread([world] {
        const RefusedWaits refused;
        try {
            world->pull();
            world->bring();
        } catch (const Error&) {
        }
    });
    explorer.finally([world, &explorer] {
        world->bring();  // wakes nobody who has gone
        if (!world->queue.try_pull() || world->queue.try_pull()) explorer.fail("a record is lost");
    });
}

TEST(ExploredOutputQueue, WhoPullsGetsARecordWhereThereIsOne) {
    expect_holds(two_pull);
    for (const Fault fault : {Fault::kNoLocks, Fault::kLostWakes}) expect_found(two_pull, fault);
}
TEST(ExploredOutputQueue, WhoPullsGoesOnWhenItEnds) {
    expect_holds(it_ends);
    for (const Fault fault : {Fault::kNoLocks, Fault::kLostWakes, Fault::kRelaxedStores})
        expect_found(it_ends, fault);
}
TEST(ExploredOutputQueue, WhoMayNotWaitTakesNobodyElsesRecord) {
    expect_holds(one_is_refused);
    expect_found(one_is_refused, Fault::kNoLocks);
}

}  // namespace
}  // namespace heddle::test
