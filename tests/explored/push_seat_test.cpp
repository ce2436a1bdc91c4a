// PushSeat under the explorer: one who pushes again and again, one who wants the box that it keeps or to know
// whether all is quiet, one who takes the seat, and the end. A box is used by one at a time, and nobody who
// was told to wait waits for ever.
#include "streams/push_seat.hpp"

#include "support/exploring.hpp"

namespace heddle::test {
namespace {

using streams::Flow;
using streams::Kept;
using streams::Pressure;
using streams::PushSeat;

/// As a short box is: whose flow keeps it uses it without its lock.
class Box final : public Kept {
  public:
    /// False: somebody else keeps it.
    bool use(Flow& flow) {
        if (keeper_.load(std::memory_order_relaxed) != &flow) {
            const std::lock_guard guard(mutex_);
            if (keeper_.load(std::memory_order_relaxed) != nullptr) return false;
            keeper_.store(&flow, std::memory_order_relaxed);
            flow.keep(*this);
        }
        ++uses_;
        return true;
    }
    void let_go() override {
        const std::lock_guard guard(mutex_);
        uses_ += waiting_;
        waiting_ = 0;
        keeper_.store(nullptr, std::memory_order_relaxed);
    }
    /// At once, or by who keeps it when it lets it go. True: that one is to be asked.
    bool leave_work() {
        const std::lock_guard guard(mutex_);
        const bool kept = keeper_.load(std::memory_order_relaxed) != nullptr;
        ++(kept ? waiting_ : uses_);
        return kept;
    }
    [[nodiscard]] int uses() const { return uses_; }
    [[nodiscard]] bool kept() const { return keeper_.load(std::memory_order_relaxed) != nullptr; }

  private:
    std::mutex mutex_;
    std::atomic<const Flow*> keeper_{nullptr};
    int waiting_ = 0;  // under the mutex
    int uses_ = 0;     // the keeper's, or under the mutex
};

struct World {
    World() {
        pressure.uncounted = [this] { return seat.ask(); };
        pressure.on_quiet = [this] { ++told; };
    }
    /// As Network::push.
    void push(uintptr_t who) {
        PushSeat::Seat* own = seat.enter(who);
        if (own == nullptr) own = seat.sit_down(who);
        if (own != nullptr) {
            used += box.use(own->flow) ? 1 : 0;
            seat.leave(*own);
            return;
        }
        Flow flow;
        pressure.begin();
        if (box.use(flow))
            ++used;
        else if (++used; box.leave_work())
            (void)seat.ask(PushSeat::For::kBox);
        flow.let_go();
        pressure.end();
    }
    /// As one who brings a record from elsewhere.
    void want_box() {
        ++used;
        if (box.leave_work()) (void)seat.ask(PushSeat::For::kBox);
    }

    Pressure pressure;
    PushSeat seat{pressure};
    Box box;
    std::atomic<int> told{0}, used{0};
};

/// Asked for its box, who pushes gives it up at the end of that push, or had done so.
void a_box_is_wanted(Explorer& explorer) {
    auto world = std::make_shared<World>();
    explorer.thread([world] {
        world->push(1);
        world->push(1);
    });
    explorer.thread([world] { world->want_box(); });
    explorer.finally([world, &explorer] {
        (void)world->seat.ask(PushSeat::For::kGood);
        if (world->box.kept()) explorer.fail("the box is kept for ever");
        if (world->box.uses() != world->used) explorer.fail("work was left behind");
    });
}

/// Who was told that it is not quiet is told when it is.
void is_it_quiet(Explorer& explorer) {
    auto world = std::make_shared<World>();
    auto waits = std::make_shared<bool>(false);
    explorer.thread([world] {
        world->push(1);
        world->push(1);
    });
    explorer.thread([world, waits] { *waits = !world->pressure.quiet(); });
    explorer.finally([world, waits, &explorer] {
        if (*waits && world->told == 0) explorer.fail("who waits for quiet is not told");
        if (!world->pressure.quiet()) explorer.fail("somebody is counted for ever");
    });
}

/// Another one who pushes often gets the seat.
void the_seat_changes(Explorer& explorer) {
    auto world = std::make_shared<World>();
    constexpr int kMisses = 63;
    world->push(1);
    for (int i = 0; i < kMisses; ++i) (void)world->seat.sit_down(2);
    explorer.thread([world] {
        world->push(1);
        world->push(1);
    });
    explorer.thread([world] { world->push(2); });
    explorer.finally([world, &explorer] {
        (void)world->seat.ask(PushSeat::For::kGood);
        if (world->box.kept()) explorer.fail("the box is kept for ever");
        if (world->box.uses() != world->used) explorer.fail("work was left behind");
    });
}

/// When nobody is to sit any more, nothing stays kept.
void the_network_is_closed(Explorer& explorer) {
    auto world = std::make_shared<World>();
    world->push(1);
    explorer.thread([world] { world->push(1); });
    explorer.thread([world] { (void)world->seat.ask(PushSeat::For::kGood); });
    explorer.finally([world, &explorer] {
        if (world->box.kept()) explorer.fail("the box is kept for ever");
        if (!world->pressure.quiet()) explorer.fail("somebody is counted for ever");
    });
}

/// Who pushes comes to a queue that is full, as one who has begun did before: one of them has it grow.
void who_was_asked_waits(Explorer& explorer) {
    auto world = std::make_shared<World>();
    auto full = std::make_shared<Pressure::Gauge>();
    full->bound = 1;
    const auto is_full = [full] { return full->bound.load(std::memory_order_relaxed) == 1; };
    world->pressure.begin();
    explorer.thread([world, full, is_full] {
        PushSeat::Seat* const own = world->seat.sit_down(1);
        if (is_full()) {
            own->flow.count();
            world->pressure.wait(*full, is_full);
        }
        world->seat.leave(*own);
    });
    explorer.thread([world, full, is_full] {
        if (is_full()) world->pressure.wait(*full, is_full);
        world->pressure.end();
    });
    explorer.finally([world, &explorer] {
        if (!world->pressure.quiet()) explorer.fail("somebody is counted for ever");
    });
}

constexpr Bounds kWide{.preemptions = 3, .stale_reads = 2, .runs = 400'000};

TEST(ExploredPushSeat, ABoxIsUsedByOneAtATime) {
    const bool here = light_fences_are_free;
    for (const bool free : {false, true}) {
        light_fences_are_free = free;
        for (const Scenario scenario : {a_box_is_wanted, the_seat_changes, the_network_is_closed})
            expect_holds(scenario, kWide);
        for (const Fault fault :
             {Fault::kNoFences, Fault::kRelaxedStores, Fault::kRelaxedLoads, Fault::kNoLocks})
            expect_found(a_box_is_wanted, fault, kWide);
        expect_found(the_seat_changes, Fault::kNoFences, kWide);
        expect_found(the_network_is_closed, Fault::kNoFences, kWide);
    }
    light_fences_are_free = here;
}

TEST(ExploredPushSeat, WhoIsAskedAndThenWaitsIsCountedOnce) {
    const bool here = light_fences_are_free;
    for (const bool free : {false, true}) {
        light_fences_are_free = free;
        expect_holds(who_was_asked_waits, {.preemptions = 2, .stale_reads = 1});
    }
    light_fences_are_free = here;
}

TEST(ExploredPushSeat, WhoAsksWhetherItIsQuietIsTold) {
    const bool here = light_fences_are_free;
    for (const bool free : {false, true}) {
        light_fences_are_free = free;
        expect_holds(is_it_quiet, kWide);
        expect_found(is_it_quiet, Fault::kNoFences, kWide);
    }
    light_fences_are_free = here;
}

}  // namespace
}  // namespace heddle::test
