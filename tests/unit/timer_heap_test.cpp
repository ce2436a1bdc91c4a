// The heap against a sorted list, by random histories.
#include "tasks/timer_heap.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace heddle {
namespace {

Time at(int64_t ns) {
    return Time(Nanoseconds(ns));
}

TEST(TimerHeapTest, IsEmptyAtFirst) {
    TimerHeap heap;
    Timer timer;
    EXPECT_TRUE(heap.empty());
    EXPECT_EQ(heap.earliest(), Time::max());
    EXPECT_EQ(heap.pop(Time::max()), nullptr);
    heap.remove(timer);
    EXPECT_TRUE(heap.empty());
}

TEST(TimerHeapTest, DoesAsASortedListDoes) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937 random(seed);
        std::vector<Timer> timers(40);
        std::set<Timer*> inside;
        TimerHeap heap;
        heap.reserve(timers.size());
        for (int step = 0; step < 400; ++step) {
            Timer& timer = timers[random() % timers.size()];
            const auto earliest = [&] {
                Time first = Time::max();
                for (const Timer* one : inside) first = std::min(first, one->time);
                return first;
            };
            if (random() % 3 == 0) {
                const Time now = at(random() % 60);
                const Time expected = earliest();
                Timer* const popped = heap.pop(now);
                ASSERT_EQ(popped != nullptr, expected <= now) << "seed " << seed;
                if (popped == nullptr) continue;
                ASSERT_EQ(popped->time, expected);
                ASSERT_EQ(inside.erase(popped), 1U);
            } else if (inside.erase(&timer) > 0) {
                heap.remove(timer);
            } else {
                timer.time = at(random() % 50);
                heap.add(timer);
                inside.insert(&timer);
            }
            ASSERT_EQ(heap.earliest(), earliest()) << "seed " << seed;
            ASSERT_EQ(timer.place == Timer::kNowhere, !inside.contains(&timer));
        }
    }
}

}  // namespace
}  // namespace heddle
