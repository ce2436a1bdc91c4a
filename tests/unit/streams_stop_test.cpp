// Networks in process that are cancelled, destroyed or settled while parts of them wait for each other.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "heddle/streams.hpp"
#include "support/wait_until.hpp"

namespace heddle::snet {
namespace {

using test::becomes_true;
using Amount = Tag<"n">;
using namespace std::chrono_literals;

/// A box and an output function that push into their own network, which is full, wait for themselves.
TEST(StreamsStopTest, WhoWaitsForHimselfIsNotWaitedFor) {
    for (const bool by_output : {false, true}) {
        NetworkOptions options;
        options.queue_bound = 2;
        std::atomic<Network*> own{nullptr};
        std::atomic<int> pushed{0};
        const auto push_more = [&] {
            Network* const network = own;
            for (int i = 0; i < 10 && network != nullptr; ++i, ++pushed) network->push(record<Amount>(i));
        };
        if (by_output) options.output = [&](const Record&) { push_more(); };
        auto network = std::make_unique<Network>(box<In<Amount>, Out<Amount>>("one",
                                                                              [&](int n) {
                                                                                  if (!by_output) push_more();
                                                                                  return n;
                                                                              }),
                                                 options);
        own = network.get();
        std::jthread pusher([&] { network->push(record<Amount>(1)); });
        EXPECT_TRUE(becomes_true([&] { return pushed > 0; }, 60s));
        network->cancel();
        pusher.join();
        network.reset();
    }
}

/// A number n becomes two of n - 1, which are pushed into the network that they come of, until it is full.
class PushedBackTest : public testing::TestWithParam<const char*> {};

TEST_P(PushedBackTest, QueuesGrowWhereWhoPushesWaitsForHimself) {
    const std::string by = GetParam();
    std::atomic<Network*> own{nullptr};
    std::atomic<int> left{0};
    const auto push_two = [&](int n) {
        ++left;
        for (int i = 0; i < 2 && n > 0; ++i) own.load()->push(record<Amount>(n - 1));
    };
    NetworkOptions options;
    options.queue_bound = 2;
    options.workers = 2;
    if (by == "output") options.output = [&](const Record& record) { push_two(record.get<Amount>()); };
    if (by == "box") options.output = [](const Record&) {};
    if (by == "letters")
        options.dead_letter = [&](const Record& record, const std::string&) {
            push_two(record.get<Amount>());
        };
    Network network(box<In<Amount>, Out<Amount>>("one",
                                                 [&](int n) {
                                                     if (by == "box") push_two(n);
                                                     if (by == "letters") throw std::runtime_error("no");
                                                     return n;
                                                 }) >>
                        box<In<Amount>, Out<Amount>>("two", [](int n) { return n; }),
                    options);
    own = &network;
    {
        std::jthread other([&] { network.push(record<Amount>(6)); });
        network.push(record<Amount>(7));
    }
    network.settle();
    EXPECT_EQ(left, 127 + 255);
}

INSTANTIATE_TEST_SUITE_P(StreamsStopTest, PushedBackTest, testing::Values("box", "output", "letters"),
                         [](const auto& one) { return std::string(one.param); });

TEST(StreamsStopTest, SettleCountsOnNobodyWhoPullsMeanwhile) {
    NetworkOptions options;
    options.output_bound = 4;
    std::atomic<bool> goes_on{false};
    Network network(box<In<Amount>, Out<Amount>>("held",
                                                 [&](int n) {
                                                     goes_on.wait(false);
                                                     return n;
                                                 }),
                    options);
    std::jthread puller([&] {
        std::this_thread::sleep_for(50ms);  // so that it settles
        EXPECT_FALSE(network.try_pull());   // and never again
        goes_on = true;
        goes_on.notify_all();
    });
    for (int i = 0; i < 100; ++i) network.push(record<Amount>(i));
    network.settle();
    int left = 0;
    while (network.try_pull()) ++left;
    EXPECT_EQ(left, 100);
}

}  // namespace
}  // namespace heddle::snet
