// The Exchange and its ShortLock, as they are, under the explorer: callbacks of one component come one at a
// time and in order, none is left behind, and none comes after detach().
#include "cores/exchange.hpp"

#include "support/exploring.hpp"

namespace heddle::test {
namespace {

const Machine& machine() {
    static const Machine& described = *new Machine(Machine::synthetic("core:2 pu:1"));
    return described;
}

void two_count_under_a_lock(Explorer& explorer) {
    struct State {
        ShortLock lock;
        int count = 0;
    };
    auto state = std::make_shared<State>();
    for (int i = 0; i < 2; ++i)
        explorer.thread([state] {
            for (int round = 0; round < 2; ++round) {
                const std::lock_guard guard(state->lock);
                ++state->count;
            }
        });
    explorer.finally([state, &explorer] {
        if (state->count != 4) explorer.fail("two were inside");
    });
}

/// What a component is told, in plain words: two callbacks at a time, or unordered ones, are a race.
struct Books {
    int cpus = 0;
    bool gone = false;
    void set(Explorer& explorer, int change) {
        cpus += change;
        if (gone) explorer.fail("a callback after detach()");
        if (cpus < 0 || cpus > 1) explorer.fail("told out of order");
    }
};

struct World {
    explicit World(Explorer& explorer) : exchange(machine()) {
        owner = exchange.attach("owner", {0, 1});
        guest = exchange.attach("guest", {});
        (void)exchange.set_callback<int>(guest, &Callbacks::enable_cpu,
                                         [this, &explorer](int) { books.set(explorer, 1); });
        (void)exchange.set_callback<int>(guest, &Callbacks::disable_cpu,
                                         [this, &explorer](int) { books.set(explorer, -1); });
    }
    Outcome lend() {
        return exchange.call([this](Ledger& l, Actions& a) { return l.lend_cpu(owner, 0, a); });
    }
    Outcome reclaim() {
        return exchange.call([this](Ledger& l, Actions& a) { return l.reclaim_cpu(owner, 0, a); });
    }
    Outcome give_back() {
        return exchange.call([this](Ledger& l, Actions& a) { return l.return_cpu(guest, 0, a); });
    }

    Books books;
    Exchange exchange;
    MemberId owner, guest;
};

void expect_told_what_holds(Explorer& explorer, World& world) {
    const int uses = world.exchange.ask([&](const Ledger& l) { return l.usable(world.guest).count(); });
    if (uses != world.books.cpus) explorer.fail("an action was left behind");
}

/// The owner lends and takes back while the guest borrows and returns: each call tells the guest something.
void lend_while_borrowing(Explorer& explorer) {
    auto world = std::make_shared<World>(explorer);
    explorer.thread([world] {
        (void)world->lend();
        (void)world->reclaim();
    });
    explorer.thread([world] {
        (void)world->exchange.borrow_cpu(world->guest, 0);
        (void)world->give_back();
    });
    explorer.finally([world, &explorer] { expect_told_what_holds(explorer, *world); });
}

/// A guest that waits for the CPU is told from the owner's thread, and leaves from its own.
void detach_while_told(Explorer& explorer) {
    auto world = std::make_shared<World>(explorer);
    (void)world->exchange.call([&](Ledger& l, Actions& a) { return l.acquire_cpu(world->guest, 0, a); });
    explorer.thread([world] {
        (void)world->lend();
        (void)world->reclaim();
    });
    explorer.thread([world] {
        (void)world->exchange.detach(world->guest);
        world->books.gone = true;
    });
}

/// A third thread replaces a callback that another may be in.
void replace_while_told(Explorer& explorer) {
    auto world = std::make_shared<World>(explorer);
    (void)world->exchange.call([&](Ledger& l, Actions& a) { return l.acquire_cpu(world->guest, 0, a); });
    explorer.thread([world] { (void)world->lend(); });
    explorer.thread([world, &explorer] {
        (void)world->exchange.set_callback<int>(world->guest, &Callbacks::enable_cpu,
                                                [world, &explorer](int) { world->books.set(explorer, 1); });
        (void)world->exchange.set_callback<int>(world->guest, &Callbacks::disable_cpu, {});
    });
    explorer.finally([world, &explorer] { expect_told_what_holds(explorer, *world); });
}

/// Who is told of a lend can borrow what was lent, though failing borrows take no lock.
void borrow_after_being_told(Explorer& explorer) {
    struct State {
        explicit State(Explorer& explorer) : world(explorer) {}
        World world;
        std::atomic<bool> told{false};
    };
    auto state = std::make_shared<State>(explorer);
    explorer.thread([state] {
        (void)state->world.lend();
        state->told.store(true, std::memory_order_release);
    });
    explorer.thread([state, &explorer] {
        if (!state->told.load(std::memory_order_acquire)) return;
        if (state->world.exchange.borrow_cpu(state->world.guest, 0) != Outcome::kSuccess)
            explorer.fail("the lend is not seen");
    });
}

constexpr Bounds kThree{.preemptions = 3, .stale_reads = 1};

TEST(ExploredShortLock, LetsOneIn) {
    expect_holds(two_count_under_a_lock, kThree);
    for (const Fault fault : {Fault::kRelaxedLoads, Fault::kRelaxedStores, Fault::kPlainReadModifyWrite})
        expect_found(two_count_under_a_lock, fault, kThree);
}
TEST(ExploredExchange, TellsInOrderAndLeavesNothingBehind) {
    expect_holds(lend_while_borrowing);
    for (const Fault fault : {Fault::kPlainCompareExchange, Fault::kRelaxedLoads, Fault::kRelaxedStores})
        expect_found(lend_while_borrowing, fault);
}
TEST(ExploredExchange, TellsNothingAfterDetach) {
    expect_holds(detach_while_told);
    expect_found(detach_while_told, Fault::kPlainReadModifyWrite);
}
TEST(ExploredExchange, CallbacksAreReplacedWhileTheyRun) {
    expect_holds(replace_while_told);
    expect_found(replace_while_told, Fault::kRelaxedStores);
}
TEST(ExploredExchange, ALendIsSeenByWhomWasTold) {
    expect_holds(borrow_after_being_told, kThree);
    expect_found(borrow_after_being_told, Fault::kRelaxedStores, kThree);
}

}  // namespace
}  // namespace heddle::test
