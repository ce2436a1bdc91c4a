// Pressure under the explorer: who waits for a queue goes on once it was emptied or has grown, who waits for
// quiet is told of it, and where such a wait is refused all counts are as before.
#include "streams/pressure.hpp"

#include "heddle/error.hpp"
#include "refused_here.hpp"
#include "support/exploring.hpp"

namespace heddle::test {
namespace {

using streams::Pressure;

/// A queue, of which only the size is there.
struct World {
    World() { gauge.bound = 1; }
    /// As a part that brings a record. False: it was refused.
    bool bring() {
        bool full = false;
        {
            const std::lock_guard guard(mutex);
            full = ++size >= gauge.bound.load(std::memory_order_relaxed);
        }
        if (!full) return true;
        try {
            pressure.wait(gauge, [this] {
                const std::lock_guard guard(mutex);
                return size >= gauge.bound.load(std::memory_order_relaxed);
            });
            return true;
        } catch (const Error&) {
            return false;
        }
    }
    void empty() {
        {
            const std::lock_guard guard(mutex);
            size = 0;
        }
        pressure.emptied(gauge);
    }
    void expect_nobody(Explorer& explorer) {
        if (gauge.waiting != 0) explorer.fail("somebody waits for ever");
        if (!pressure.quiet()) explorer.fail("somebody is counted for ever");
    }

    Pressure pressure;
    Pressure::Gauge gauge;
    std::mutex mutex;
    size_t size = 0;
};

/// Who brings goes on by who empties; or, as that one ends, by a bound that grows.
void it_is_full(Explorer& explorer) {
    auto world = std::make_shared<World>();
    for (int i = 0; i < 2; ++i) world->pressure.begin();
    explorer.thread([world] {
        (void)world->bring();
        world->pressure.end();
    });
    explorer.thread([world] {
        world->empty();
        world->pressure.end();
    });
    explorer.finally([world, &explorer] { world->expect_nobody(explorer); });
}

void a_wait_is_refused(Explorer& explorer) {
    auto world = std::make_shared<World>();
    for (int i = 0; i < 2; ++i) world->pressure.begin();
    explorer.thread([world] {
        {
            const RefusedWaits refused;
            (void)world->bring();
        }
        world->pressure.end();
    });
    explorer.thread([world] {
        world->empty();
        world->pressure.end();
    });
    explorer.finally([world, &explorer] {
        world->empty();
        world->expect_nobody(explorer);
    });
}

void it_becomes_quiet(Explorer& explorer) {
    auto world = std::make_shared<World>();
    world->pressure.begin();
    explorer.thread([world] { world->pressure.end(); });
    for (int i = 0; i < 2; ++i) explorer.thread([world] { world->pressure.wait_until_quiet(); });
}

/// Each empties its own queue when it has brought a record to the other's; somebody else is at work for good.
void two_wait_for_each_other(Explorer& explorer) {
    struct Two {
        World first, second;  // all is counted in the pressure of the first
        void bring(World& to, World& own) {
            Pressure& pressure = first.pressure;
            const auto is_full = [&to] {
                const std::lock_guard guard(to.mutex);
                return to.size >= to.gauge.bound.load(std::memory_order_relaxed);
            };
            pressure.wait(to.gauge, is_full, {&own.gauge});
            {
                const std::lock_guard guard(own.mutex);
                own.size = 0;
            }
            pressure.emptied(own.gauge);
            pressure.end();
        }
    };
    auto two = std::make_shared<Two>();
    two->first.size = two->second.size = 1;
    for (int i = 0; i < 3; ++i) two->first.pressure.begin();
    explorer.thread([two] { two->bring(two->first, two->second); });
    explorer.thread([two] { two->bring(two->second, two->first); });
    explorer.finally([two, &explorer] {
        if (two->first.gauge.waiting + two->second.gauge.waiting != 0)
            explorer.fail("somebody waits for ever");
    });
}

/// And waits again then.
void one_is_refused(Explorer& explorer) {
    auto world = std::make_shared<World>();
    world->pressure.begin();
    explorer.thread([world, &explorer] {
        try {
            world->pressure.end();
        } catch (const Error&) {
            explorer.fail("one that waits is told twice");
        }
    });
    explorer.thread([world] {
        auto refused = std::make_unique<RefusedWaits>();
        for (bool told = false; !told; refused.reset()) {
            try {
                world->pressure.wait_until_quiet();
                told = true;
            } catch (const Error&) {
            }
        }
    });
    explorer.finally([world, &explorer] { world->expect_nobody(explorer); });
}

TEST(ExploredPressure, WhoWaitsForAQueueGoesOn) {
    expect_holds(it_is_full);
    for (const Fault fault : {Fault::kNoLocks, Fault::kLostWakes, Fault::kPlainReadModifyWrite})
        expect_found(it_is_full, fault);
}
TEST(ExploredPressure, TwoThatWaitForEachOtherGoOn) {
    expect_holds(two_wait_for_each_other);
    for (const Fault fault : {Fault::kNoLocks, Fault::kLostWakes})
        expect_found(two_wait_for_each_other, fault);
}
TEST(ExploredPressure, AWaitThatIsRefusedLeavesNothingBehind) {
    expect_holds(a_wait_is_refused);
    expect_found(a_wait_is_refused, Fault::kNoLocks);
}
TEST(ExploredPressure, WhoWaitsForQuietIsTold) {
    expect_holds(it_becomes_quiet);
    for (const Fault fault : {Fault::kNoLocks, Fault::kLostWakes, Fault::kPlainReadModifyWrite})
        expect_found(it_becomes_quiet, fault);
}
TEST(ExploredPressure, WhoMayNotWaitForQuietMayWaitLater) {
    expect_holds(one_is_refused);
    expect_found(one_is_refused, Fault::kNoLocks);
}

}  // namespace
}  // namespace heddle::test
