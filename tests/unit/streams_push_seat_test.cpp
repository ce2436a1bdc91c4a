// Who pushes all the time keeps short boxes from one push to the next: nothing is lost, and nobody waits for
// ever, whoever else wants them.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "heddle/streams.hpp"
#include "streams/push_seat.hpp"
#include "support/sanitized.hpp"

namespace heddle::snet {
namespace {

using namespace test;

using A = Tag<"a">;
using B = Tag<"b">;

constexpr int kMany = kSanitized ? 2'000 : 20'000;

Net short_box(const char* name) {
    return box<In<A>, Out<A>>(name, [](int a) { return a + 1; });
}

TEST(StreamsPushSeatTest, ManyPushAtOnceAndOthersAskWhetherItIsQuiet) {
    std::atomic<int> left{0};
    NetworkOptions options;
    options.workers = 2;
    options.output = [&](const Record& /*record*/) { left.fetch_add(1, std::memory_order_relaxed); };
    Network network(short_box("x") >> short_box("y") >> short_box("z"), options);
    constexpr int kThreads = 3;
    std::atomic<bool> done{false};
    std::thread asks([&] {
        while (!done) network.settle();
    });
    std::vector<std::thread> pushers;
    for (int i = 0; i < kThreads; ++i)
        pushers.emplace_back([&] {
            for (int a = 0; a < kMany; ++a) network.push(record<A>(a));
        });
    for (std::thread& one : pushers) one.join();
    done = true;
    asks.join();
    network.settle();
    EXPECT_EQ(left, kThreads * kMany);
}

/// A worker brings records to the box that the pushing thread keeps.
TEST(StreamsPushSeatTest, AWorkerGetsABoxThatIsKept) {
    std::atomic<int> left{0};
    NetworkOptions options;
    options.workers = 2;
    options.queue_bound = 4;
    options.output = [&](const Record& /*record*/) { left.fetch_add(1, std::memory_order_relaxed); };
    const Net slow = box<In<B>, Out<A>>("slow", [](int b) {
        volatile int work = 2'000;
        while (work > 0) work = work - 1;
        return b;
    });
    Network network((short_box("quick") | slow) >> short_box("kept"), options);
    for (int round = 0; round < 4; ++round) {
        for (int i = 0; i < kMany / 4; ++i) {
            network.push(record<A>(i));
            if (i % 16 == 0) network.push(record<B>(i));
        }
        network.settle();  // also with a record that only waits in the queue of a box that is kept
        EXPECT_EQ(left, (round + 1) * (kMany / 4 + (kMany / 4 + 15) / 16));
    }
}

/// The order of one way stays, also where another thread takes the seat.
TEST(StreamsPushSeatTest, EachPushersRecordsKeepTheirOrder) {
    std::vector<int> seen[2];
    NetworkOptions options;
    options.workers = 2;
    options.output = [&](const Record& record) { seen[record.get<B>()].push_back(record.get<A>()); };
    Network network(short_box("x") >> short_box("y"), options);
    std::vector<std::thread> pushers;
    for (int b = 0; b < 2; ++b)
        pushers.emplace_back([&, b] {
            for (int a = 0; a < kMany; ++a) network.push(record<A, B>(a, b));
        });
    for (std::thread& one : pushers) one.join();
    network.settle();
    for (const std::vector<int>& one : seen) {
        ASSERT_EQ(one.size(), static_cast<size_t>(kMany));
        for (int a = 0; a < kMany; ++a) ASSERT_EQ(one[static_cast<size_t>(a)], a + 2);
    }
}

TEST(StreamsPushSeatTest, ABoxMayPushIntoItsOwnNetwork) {
    std::atomic<int> left{0};
    Network* running = nullptr;
    NetworkOptions options;
    options.workers = 2;
    options.queue_bound = 4096;  // all of them: a call that waits for its own box would wait for itself
    options.output = [&](const Record& /*record*/) { left.fetch_add(1, std::memory_order_relaxed); };
    const Net again = box<In<A>, Out<A>>("again", [&](int a) {
        if (a > 0 && a % 2 == 0) running->push(record<A>(a + 1));
        return a;
    });
    Network network(again >> short_box("behind"), options);
    running = &network;
    for (int i = 0; i < 1000; ++i) network.push(record<A>(i));
    network.settle();
    EXPECT_EQ(left, 1000 + 499);
}

TEST(StreamsPushSeatTest, WhatIsPulledAfterTheEndIsAll) {
    NetworkOptions options;
    options.workers = 2;
    options.output_bound = 8;
    Network network(short_box("x") >> short_box("y"), options);
    std::thread pushes([&] {
        for (int a = 0; a < kMany; ++a) network.push(record<A>(a));
        network.close();
    });
    int next = 2;
    while (const std::optional<Record> record = network.pull()) EXPECT_EQ(record->get<A>(), next++);
    pushes.join();
    EXPECT_EQ(next, kMany + 2);
}

/// Each of them brings a batch before it takes what is there: who pulled last waits to push as well. A bound
/// that has grown stays so, and a network that is new has another chance.
TEST(StreamsPushSeatTest, ThreadsThatPushAndPullByTurnsDoNotWaitForEachOther) {
    constexpr int kNetworks = kSanitized ? 20 : 100, kThreads = 3, kRounds = 4, kBatch = 50;
    constexpr int kAll = kThreads * kRounds * kBatch;
    NetworkOptions options;
    options.workers = 1;
    options.queue_bound = 4;
    options.output_bound = 4;
    for (int i = 0; i < kNetworks; ++i) {
        Network network(short_box("x") >> short_box("y"), options);
        std::atomic<int> pulled{0};
        std::barrier together(kThreads);
        std::vector<std::thread> threads;
        for (int k = 0; k < kThreads; ++k)
            threads.emplace_back([&] {
                together.arrive_and_wait();
                for (int round = 0; round < kRounds; ++round) {
                    for (int a = 0; a < kBatch; ++a) network.push(record<A>(a));
                    while (network.try_pull()) ++pulled;
                }
                while (pulled < kAll)
                    if (network.try_pull())
                        ++pulled;
                    else
                        std::this_thread::yield();
            });
        for (std::thread& one : threads) one.join();
        EXPECT_EQ(pulled, kAll);
    }
}

}  // namespace
}  // namespace heddle::snet
