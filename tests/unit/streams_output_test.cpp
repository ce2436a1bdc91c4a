// The function that records leave to: one call at a time, whatever it waits for itself.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "heddle/streams.hpp"

namespace heddle::snet {
namespace {

using namespace std::chrono_literals;

using A = Tag<"a">;
using B = Tag<"b">;

/// Long enough that it is called by a worker.
template <class In_>
Net long_box(const char* name, std::chrono::milliseconds time) {
    return box<In<In_>, Out<A>>(name, [time](int value) {
        std::this_thread::sleep_for(time);
        return value;
    });
}

/// The call that waits is a task's, which leaves its worker meanwhile; the other box of the same worker comes
/// then, and waits for its turn.
TEST(StreamsOutputTest, MayPushIntoANetworkThatIsFull) {
    constexpr int kCount = 60;
    NetworkOptions small;
    small.workers = 1;
    small.queue_bound = small.output_bound = 2;
    Network second(long_box<A>("slow", 3ms), small);
    NetworkOptions chained = small;
    chained.output = [&](Record record) { second.push(std::move(record)); };
    long sum = 0;
    {
        Network first(long_box<A>("left", 1ms) | long_box<B>("right", 1ms), chained);
        std::thread pulls([&] {
            for (int i = 0; i < kCount; ++i) sum += second.pull()->get<A>();
        });
        for (int i = 0; i < kCount; ++i) {
            if (i % 2 == 0)
                first.push(record<A>(i));
            else
                first.push(record<B>(i));
        }
        first.settle();
        pulls.join();
    }
    EXPECT_EQ(sum, kCount * (kCount - 1) / 2);
}

TEST(StreamsOutputTest, IsCalledOneAtATimeByManyBoxes) {
    constexpr int kCount = 200;
    std::atomic<int> inside{0};
    int calls = 0;
    NetworkOptions options;
    options.workers = 3;
    options.output = [&](const Record& /*record*/) {
        EXPECT_EQ(inside.fetch_add(1), 0);
        std::this_thread::sleep_for(50us);
        ++calls;
        inside.fetch_sub(1);
    };
    Network network(box<In<A>, Out<A>>("some",
                                       [](int a) {
                                           std::this_thread::sleep_for(50us);
                                           return a;
                                       },
                                       {.calls = 3}),
                    options);
    for (int i = 0; i < kCount; ++i) network.push(record<A>(i));
    network.settle();
    EXPECT_EQ(calls, kCount);
}

/// A box that has used a value up leaves it to the record that has it, too.
TEST(StreamsOutputTest, AValueIsOfItsLastRecordWhoeverLookedAtItBefore) {
    using Pointer = std::unique_ptr<int>;
    using X = Field<"x", Pointer>;
    using Y = Field<"y", Pointer>;
    std::atomic<int> sum{0};
    NetworkOptions options;
    options.workers = 1;
    options.output = [](const Record& /*record*/) {};
    Network network(filter("{x} -> {x, y = x}") >>
                        box<In<X>, Out<B>>("looks", [](const Pointer& x) { return *x; }) >>
                        box<In<Y>, Out<A>>("takes",
                                           [&](Pointer y) {
                                               std::this_thread::sleep_for(200us);
                                               sum += *y;
                                               return 0;
                                           }),
                    options);
    for (int i = 0; i < 100; ++i) {
        network.push(record<X>(std::make_unique<int>(i)));
        if (i % 10 == 9) network.settle();
    }
    network.settle();
    EXPECT_EQ(sum, 100 * 99 / 2);
}

}  // namespace
}  // namespace heddle::snet
