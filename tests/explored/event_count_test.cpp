// The EventCount as it is, under the explorer: who is about to sleep sees what came to pass, or is woken.
#include "tasks/event_count.hpp"

#include "support/exploring.hpp"

namespace heddle::test {
namespace {

void two_wait_for_one_event_each(Explorer& explorer) {
    struct State {
        EventCount events;
        std::atomic<int> happened{0};
    };
    auto state = std::make_shared<State>();
    for (int number = 1; number <= 2; ++number)
        explorer.thread([state, number] {
            state->events.wait([&] { return state->happened.load(std::memory_order_relaxed) >= number; });
        });
    explorer.thread([state] {
        for (int number = 1; number <= 2; ++number) {
            state->happened.store(number, std::memory_order_relaxed);
            state->events.notify();
        }
    });
}

TEST(ExploredEventCount, WakesWhoIsAboutToSleep) {
    expect_holds(two_wait_for_one_event_each);
    for (const Fault fault :
         {Fault::kNoFences, Fault::kNotSequential, Fault::kPlainReadModifyWrite, Fault::kLostWakes})
        expect_found(two_wait_for_one_event_each, fault);
}

}  // namespace
}  // namespace heddle::test
