// BiasedLock under the explorer: whoever is favoured, and whenever that is withdrawn, one is inside at a time
// and sees what the last one did.
#include "cores/biased_lock.hpp"

#include "support/exploring.hpp"

namespace heddle::test {
namespace {

struct World {
    explicit World(uint32_t streak) : lock(streak) {}
    void enter(int thread) {
        const BiasedLock::Guard guard(lock, keys[thread]);
        ++inside;
    }
    /// Whether it is favoured or not, as where something may throw inside.
    void take_turn(int thread) {
        lock.lock(keys[thread]);
        ++inside;
        lock.unlock();
    }
    void enter_without_key() {
        const std::lock_guard guard(lock);
        ++inside;
    }

    BiasedLock lock;
    BiasedLock::Key keys[2];
    int inside = 0;  // plain: two at once are a race
};

void expect(Explorer& explorer, const std::shared_ptr<World>& world, int times) {
    explorer.finally([world, times, &explorer] {
        if (world->inside != times) explorer.fail("one was lost");
    });
}

/// One that is favoured, and one that comes twice.
void the_favour_is_withdrawn(Explorer& explorer) {
    auto world = std::make_shared<World>(3);
    for (int i = 0; i < 4; ++i) world->enter(0);
    explorer.thread([world] {
        world->enter(0);
        world->enter(0);
    });
    explorer.thread([world] {
        world->enter(1);
        world->enter_without_key();
    });
    expect(explorer, world, 8);
}

/// The favoured one takes its turn, too, and keeps the favour for what it does next.
void the_favoured_one_takes_its_turn(Explorer& explorer) {
    auto world = std::make_shared<World>(3);
    for (int i = 0; i < 4; ++i) world->enter(0);
    explorer.thread([world] {
        world->take_turn(0);
        world->enter(0);
    });
    explorer.thread([world] { world->take_turn(1); });
    expect(explorer, world, 7);
}

/// Whoever comes twice in turn has it.
void the_favour_goes_round(Explorer& explorer) {
    auto world = std::make_shared<World>(1);
    for (int thread = 0; thread < 2; ++thread)
        explorer.thread([world, thread] {
            for (int i = 0; i < 3; ++i) world->enter(thread);
        });
    expect(explorer, world, 6);
}

TEST(ExploredBiasedLock, OneIsInsideWhenTheFavourIsWithdrawn) {
    expect_holds(the_favour_is_withdrawn);
    for (const Fault fault :
         {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kNoFences, Fault::kPlainReadModifyWrite})
        expect_found(the_favour_is_withdrawn, fault);
}
TEST(ExploredBiasedLock, OneIsInsideWhereTheFavouredOneTakesItsTurn) {
    expect_holds(the_favoured_one_takes_its_turn);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kNoFences})
        expect_found(the_favoured_one_takes_its_turn, fault);
}
TEST(ExploredBiasedLock, OneIsInsideWhoeverIsFavoured) {
    expect_holds(the_favour_goes_round);
    for (const Fault fault : {Fault::kRelaxedStores, Fault::kNoFences})
        expect_found(the_favour_goes_round, fault);
}

}  // namespace
}  // namespace heddle::test
