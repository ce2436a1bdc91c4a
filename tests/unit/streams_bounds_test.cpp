// How many records wait before a box (NetworkOptions::queue_bound), and that queues grow where boxes wait for
// each other.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "heddle/streams.hpp"
#include "support/kernels.hpp"
#include "support/wait_until.hpp"

namespace heddle::snet {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::Le;

using A = Tag<"a">;
using B = Tag<"b">;

struct Shape {
    size_t bound;
    int calls;
};

class StreamsBounds : public testing::TestWithParam<Shape> {};

/// The box takes longer than the thread that pushes.
TEST_P(StreamsBounds, NoMoreThanThatWaitBesideThoseInItsCalls) {
    const auto [bound, calls] = GetParam();
    std::atomic<int> pushed{0}, called{0}, most{0};
    const Net slow = box<In<A>, Out<A>>("slow",
                                        [&](int a) {
                                            const int waiting = pushed - ++called;
                                            for (int before = most; before < waiting;)
                                                if (most.compare_exchange_weak(before, waiting)) break;
                                            test::spend(std::chrono::microseconds(50));
                                            return a;
                                        },
                                        {.calls = calls, .ordered = false});
    NetworkOptions options;
    options.workers = 2;
    options.queue_bound = bound;
    options.output = [](const Record& /*record*/) {};
    Network network(slow, std::move(options));
    for (int i = 0; i < 1'000; ++i) {
        network.push(record<A>(i));
        ++pushed;
    }
    network.close();
    network.settle();
    EXPECT_EQ(called, 1'000);
    // Others may be in their calls already, and not have counted yet; and half of them are in the queue, but
    // for the one that is called next.
    EXPECT_THAT(most, AllOf(Ge(static_cast<int>(bound) / 2 - 1), Le(static_cast<int>(bound) + calls - 1)));
}

/// Each record of the first branch becomes four that go back, so that its boxes wait for themselves and for
/// each other. The box of the other one is busy until all of them have left.
void branch_is_done_while_another_is_busy(const Net& branch) {
    constexpr int kCount = 1024;
    std::atomic<int> left{0};
    const Net busy = box<In<B>, Out<B>>("busy", [&](int b) {
        EXPECT_TRUE(test::becomes_true([&] { return left == kCount; }, std::chrono::seconds(60)));
        return b;
    });
    NetworkOptions options;
    options.workers = 2;
    options.queue_bound = 2;
    options.output = [&](const Record& record) { left += record.has<A>() ? 1 : 0; };
    Network network(feedback(branch, {Pattern("{<a>} if <a > 0>")}) | busy, std::move(options));
    network.push(record<B>(0));
    network.push(record<A>(5));
    network.close();
    network.settle();
    EXPECT_EQ(left, kCount);
}

Net four(std::chrono::microseconds each) {
    return box<In<A>, Out<A>>("four", [each](Emit<Out<A>>& emit, int a) {
        for (int i = 0; i < 4; ++i) {
            test::spend(each);
            emit(a - 1);
        }
    });
}

TEST(StreamsCircles, ABoxThatWaitsForItself) {
    for (const int us : {0, 20}) branch_is_done_while_another_is_busy(four(std::chrono::microseconds(us)));
}

TEST(StreamsCircles, BoxesThatWaitForEachOther) {
    for (const int us : {0, 20}) {
        const Net same = box<In<A>, Out<A>>("same", [us](int a) {
            test::spend(std::chrono::microseconds(us));
            return a;
        });
        branch_is_done_while_another_is_busy(same >> four(std::chrono::microseconds(us)) >> same);
    }
}

/// What a queue has grown by is for what is under way: who pushes does not fill it.
TEST(StreamsGrowth, WhatGoesInWaitsForWhatBecomesMore) {
    constexpr int kCount = 3'000, kLeaves = 64;
    for (const size_t workers : {1, 2}) {
        std::atomic<int> alive{0}, most{0}, left{0};
        const Net four = box<In<A>, Out<A>>("four", [&](Emit<Out<A>>& emit, int a) {
            const int now = alive += 3;
            for (int before = most; before < now;)
                if (most.compare_exchange_weak(before, now)) break;
            for (int i = 0; i < 4; ++i) emit(a - 1);
        });
        NetworkOptions options;
        options.workers = static_cast<int>(workers);
        options.queue_bound = 4;
        options.output = [&](const Record& /*record*/) {
            --alive;
            ++left;
        };
        Network network(feedback(four, {Pattern("{<a>} if <a > 0>")}), std::move(options));
        for (int i = 0; i < kCount; ++i) {
            ++alive;
            network.push(record<A>(3));
        }
        network.close();
        network.settle();
        EXPECT_EQ(left, kCount * kLeaves);
        EXPECT_LT(most, 32 * kLeaves);
    }
}

INSTANTIATE_TEST_SUITE_P(Each, StreamsBounds,
                         testing::Values(Shape{1, 1}, Shape{2, 1}, Shape{3, 1}, Shape{16, 1}, Shape{64, 1},
                                         Shape{1, 2}, Shape{16, 2}),
                         [](const auto& one) {
                             return std::to_string(one.param.bound) + "_records_" +
                                    std::to_string(one.param.calls) + "_calls";
                         });

}  // namespace
}  // namespace heddle::snet
