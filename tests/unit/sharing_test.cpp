// Tasks that update the same data in any order: commute() and redux().
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>

#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "support/engines.hpp"
#include "support/sanitized.hpp"

namespace heddle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class SharingTest : public test::ARuntimeOnEachEngine {};
INSTANTIATE_TEST_SUITE_P(Engines, SharingTest, test::engines(), test::engine_name);

TEST_P(SharingTest, TasksThatCommuteRunOneAtATimeAndBetweenTheOthers) {
    Scalar<long> x(runtime_, 1), seen(runtime_, 0);
    std::atomic<int> inside{0}, most{0};
    Sequence sequence(runtime_);
    for (int round = 0; round < 50; ++round) {
        sequence.insert([](long& v) { v *= 2; }, inout(x));
        for (int i = 0; i < 20; ++i)
            sequence.insert(
                [&](long& v) {
                    const int here = ++inside;
                    for (int before = most; before < here && !most.compare_exchange_weak(before, here);) {
                    }
                    v += 3;
                    --inside;
                },
                commute(x));
        for (int i = 0; i < 3; ++i)
            sequence.insert([](const long& v, long& sum) { sum += v; }, in(x), commute(seen));
        sequence.insert([](long& v) { v %= 1'000'003; }, inout(x));
    }
    sequence.wait();
    EXPECT_EQ(most, 1);
    long expected = 1, sum = 0;
    for (int round = 0; round < 50; ++round) {
        expected = expected * 2 + 60;
        sum += 3 * expected;
        expected %= 1'000'003;
    }
    EXPECT_EQ(x.get(), expected);
    EXPECT_EQ(seen.get(), sum);
}

/// On engines without a graph of their own: with one tasks that commute keep the order of insertion.
class AnyOrderTest : public test::ARuntimeOnEachEngine {};
INSTANTIATE_TEST_SUITE_P(Engines, AnyOrderTest, testing::Values("native", "tbb"), test::engine_name);

TEST_P(AnyOrderTest, OneThatCannotRunYetLetsLaterOnesPass) {
    Scalar<int> x(runtime_, 0), late(runtime_, 0);
    BlockCondition passed;
    Sequence sequence(runtime_);
    sequence.insert([&](int&) { passed.block(); }, out(late));
    sequence.insert([](int& v, const int&) { v = v * 10 + 1; }, commute(x), in(late));
    sequence.insert(
        [&](int& v) {
            v = v * 10 + 2;
            passed.signal();
        },
        commute(x));
    sequence.wait();
    EXPECT_EQ(x.get(), 21);
}

TEST_P(SharingTest, ATaskThatWaitsForItsTurnHoldsNoWorker) {
    Runtime runtime(options(1));
    Scalar<int> x(runtime, 0);
    BlockCondition go_on;
    Sequence sequence(runtime);
    sequence.insert(
        [&](int& v) {
            go_on.block();
            ++v;
        },
        commute(x));
    for (int i = 0; i < 5; ++i) sequence.insert([](int& v) { ++v; }, commute(x));
    sequence.insert([&] { go_on.signal(); });
    sequence.wait();
    EXPECT_EQ(x.get(), 6);
}

TEST_P(SharingTest, SeveralDataAtOnceAndNoDeadlock) {
    std::vector<Scalar<uint64_t>> data;
    for (int i = 0; i < 5; ++i) data.emplace_back(runtime_);
    std::array<std::atomic<bool>, 5> taken{};
    std::atomic<bool> twice{false};
    std::vector<uint64_t> expected(5);
    std::mt19937 random(7);
    Sequence sequence(runtime_);
    for (uint64_t i = 0; i < 20'000; ++i) {
        std::array<size_t, 5> order{0, 1, 2, 3, 4};
        std::ranges::shuffle(order, random);
        const auto [a, b, c, d, e] = order;
        expected[a] += i, expected[b] += 2 * i, expected[c] += 3 * i;
        sequence.insert(
            {.priority = static_cast<int>(random() % 3)},
            [&, i, a = a, b = b, c = c](uint64_t& x, uint64_t& y, uint64_t& z) {
                for (const size_t one : {a, b, c})
                    if (taken[one].exchange(true)) twice = true;
                x += i, y += 2 * i, z += 3 * i;
                for (const size_t one : {a, b, c}) taken[one] = false;
            },
            commute(data[a]), commute(data[b]), commute(data[c]));
    }
    sequence.wait();
    EXPECT_FALSE(twice);
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(data[i].get(), expected[i]);
}

/// The one that has its turn waits for the one that waits for its turn.
TEST_P(AnyOrderTest, ACircleThroughATurnIsRefused) {
    for (const bool by_data : {false, true}) {
        Scalar<int> x(runtime_, 0), y(runtime_, 0);
        Sequence holds(runtime_), wants(runtime_);
        BlockCondition inserted;
        int refused = 0;
        holds.insert(
            [&](int&) {
                inserted.block();
                try {
                    by_data ? y.wait() : wants.wait();
                } catch (const Error& error) {
                    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
                    ++refused;
                }
            },
            commute(x));
        wants.insert([](int& a, int& b) { a = b = 1; }, commute(x), inout(y));
        inserted.signal();
        holds.wait();
        wants.wait();
        EXPECT_EQ(refused, 1);
        EXPECT_EQ(y.get(), 1);
    }
}

TEST_P(SharingTest, AnErrorCancelsThoseThatCommuteLater) {
    Scalar<int> x(runtime_, 0);
    std::atomic<int> ran{0};
    Sequence sequence(runtime_);
    sequence.insert([](int&) { throw std::runtime_error("spilt"); }, inout(x));
    for (int i = 0; i < 10; ++i) sequence.insert([&](int&) { ++ran; }, commute(x));
    sequence.insert([&](const int&) { ++ran; }, in(x));
    EXPECT_THAT([&] { sequence.wait(); }, ThrowsMessage<std::runtime_error>(HasSubstr("spilt")));
    EXPECT_EQ(ran, 0);
    // Turns were given on all the same.
    sequence.insert([&](int& v) { v = 4; }, commute(x));
    sequence.wait();
    EXPECT_EQ(x.get(), 4);
}

TEST_P(SharingTest, CopiesAreCombinedBeforeTheNextReaderOrWriter) {
    Scalar<long> sum(runtime_, 5);
    Vector<int> most(runtime_, 3);
    long seen = 0;
    Sequence sequence(runtime_);
    sequence.insert([](std::span<int> v) { std::ranges::fill(v, 10); }, out(most));
    for (int i = 1; i <= 1'000; ++i)
        sequence.insert(
            [i](long& part, std::span<int> largest) {
                part += i;
                largest[static_cast<size_t>(i % 3)] = std::max(largest[static_cast<size_t>(i % 3)], i);
            },
            redux(sum), redux(most, 0, [](const int& a, const int& b) { return std::max(a, b); }));
    sequence.insert([&](const long& v) { seen = v; }, in(sum));
    sequence.insert([](long& v) { v *= 2; }, inout(sum));
    for (int i = 0; i < 10; ++i) sequence.insert([](long& part) { ++part; }, redux(sum));
    sequence.wait();
    EXPECT_EQ(seen, 5 + 500'500);
    EXPECT_EQ(sum.get(), 2 * seen + 10);
    EXPECT_THAT(most.get(), testing::ElementsAre(999, 1'000, 998));
}

/// As many copies as tasks that were paused with one are freed by one task, on a stack that is small.
TEST_P(SharingTest, TenThousandMayBePausedWithACopyEach) {
    const int count = test::kThreadSanitized ? 1'000 : 10'000;  // it has room for so many stacks
    Scalar<long> sum(runtime_, 0);
    Sequence sequence(runtime_);
    std::vector<BlockCondition> goes_on(count);
    for (int i = 0; i < count; ++i)
        sequence.insert(
            [&, i](long& own) {
                goes_on[static_cast<size_t>(i)].block();
                own += i;
            },
            redux(sum));
    for (BlockCondition& one : goes_on) one.signal();
    sequence.wait();
    EXPECT_EQ(sum.get(), long{count} * (count - 1) / 2);
}

TEST_P(SharingTest, ACopyBeginsWithTheNeutralElement) {
    Scalar<double> product(runtime_, 3.0);
    Sequence sequence(runtime_);
    std::atomic<int> wrong{0};
    const auto times = [](double a, double b) { return a * b; };
    for (int i = 0; i < 20; ++i) {
        // Alone in its group: the copy is new.
        sequence.insert([&](double& part) { wrong += part != 1.0, part = 2.0; }, redux(product, 1.0, times));
        sequence.insert([](double& v) { v /= 2; }, inout(product));
    }
    sequence.wait();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(product.get(), 3.0);
}

TEST_P(SharingTest, AnotherFunctionIsAnotherGroup) {
    Scalar<long> x(runtime_, 0);
    const auto largest = [](long a, long b) { return std::max(a, b); };
    long expected = 0;
    Sequence sequence(runtime_);
    for (long round = 0; round < 100; ++round) {
        for (int i = 0; i < 5; ++i) sequence.insert([](long& v) { v += 1; }, redux(x));
        for (long i = 0; i < 5; ++i)
            sequence.insert([=](long& v) { v = std::max(v, round * 6 + i); }, redux(x, 0L, largest));
        for (int i = 0; i < 5; ++i) sequence.insert([](long& v) { v += 2; }, commute(x));
        expected = std::max(expected + 5, round * 6 + 4) + 10;
    }
    sequence.wait();
    EXPECT_EQ(x.get(), expected);
}

TEST_P(SharingTest, MatricesAreCombinedByTheirViewsWithAnyLeadingDimension) {
    std::vector<float> memory(5 * 3, 1.0F);
    Matrix<float> a(runtime_, MatrixView<float>{memory.data(), 2, 3, 5});
    const auto add = [](MatrixView<float> into, MatrixView<const float> copy) {
        for (size_t j = 0; j < into.columns; ++j)
            for (size_t i = 0; i < into.rows; ++i) into(i, j) += copy(i, j);
    };
    Sequence sequence(runtime_);
    for (int i = 0; i < 64; ++i)
        sequence.insert([](MatrixView<float> part) { part(1, 2) += 1, part(0, 0) += 2; },
                        redux(a, 0.0F, add));
    sequence.wait();
    EXPECT_EQ(a.get()(1, 2), 65.0F);
    EXPECT_EQ(a.get()(0, 0), 129.0F);
    EXPECT_EQ(memory[2], 1.0F);
}

/// The handle goes with the closure, before the task has given its turn on and combined what it has.
TEST_P(SharingTest, ATaskMayHaveTheLastShareOfItsData) {
    float counted = 1, summed = 1;
    const auto matrix = [&](float& memory) {
        return std::make_shared<Matrix<float>>(runtime_, MatrixView<float>{&memory, 1, 1, 1});
    };
    const auto add = [](MatrixView<float> into, MatrixView<const float> copy) { into(0, 0) += copy(0, 0); };
    Sequence sequence(runtime_);
    for (int i = 0; i < 200; ++i) {
        auto count = matrix(counted), sum = matrix(summed);
        sequence.insert([count](MatrixView<float> x) { x(0, 0) += 1; }, commute(*count));
        sequence.insert([sum](MatrixView<float> part) { part(0, 0) += 2; }, redux(*sum, 0.0F, add));
        count.reset();
        sum.reset();
        sequence.wait();
    }
    EXPECT_EQ(counted, 201.0F);
    EXPECT_EQ(summed, 401.0F);
}

TEST_P(SharingTest, SequencesThatHaveAllBeenWaitedForLeaveNothingInCopies) {
    long total = 0;
    Scalar<long> x = Scalar<long>::over(runtime_, total);
    for (int round = 1; round <= 200; ++round) {
        Sequence first(runtime_), second(runtime_);
        for (int i = 0; i < 4; ++i) {
            first.insert([](long& v) { ++v; }, redux(x));
            second.insert([](long& v) { ++v; }, redux(x));
        }
        first.wait();
        second.wait();
        ASSERT_EQ(total, 8 * round);
    }
}

TEST_P(SharingTest, ErrorsOfTasksThatReduceAndOfWhatCombines) {
    Scalar<int> x(runtime_, 0), y(runtime_, 0);
    std::atomic<bool> read{false};
    Sequence sequence(runtime_);
    for (int i = 0; i < 10; ++i)
        sequence.insert(
            [i](int& v) {
                if (i == 3) throw std::runtime_error("no third");
                ++v;
            },
            redux(x));
    sequence.insert([&](const int&) { read = true; }, in(x));
    EXPECT_THAT([&] { sequence.wait(); }, ThrowsMessage<std::runtime_error>(HasSubstr("no third")));
    EXPECT_FALSE(read);
    const auto fails = [](const int&, const int&) -> int { throw std::runtime_error("cannot be combined"); };
    sequence.insert([](int& v) { v = 1; }, redux(y, 0, fails));
    sequence.insert([&](const int&) { read = true; }, in(y));
    EXPECT_THAT([&] { sequence.wait(); }, ThrowsMessage<std::runtime_error>(HasSubstr("cannot be combined")));
    EXPECT_FALSE(read);
    sequence.insert([](int& v) { v = 8; }, out(x));
    sequence.insert([](int& v) { v += 1; }, redux(x));
    sequence.wait();
    EXPECT_EQ(x.get(), 9);
}

TEST_P(SharingTest, ChildrenOfATaskShareAmongThemselves) {
    Scalar<long> x(runtime_, 0), y(runtime_, 0);
    Sequence sequence(runtime_);
    for (int i = 0; i < 20; ++i)
        sequence.insert(
            [&](long&, long&) {
                // The parent has its turn; its children take theirs.
                Sequence children(runtime_);
                for (int k = 0; k < 10; ++k) {
                    children.insert([](long& v) { ++v; }, commute(x));
                    children.insert([](long& v) { ++v; }, redux(y));
                }
                children.wait();
            },
            commute(x), inout(y));
    sequence.wait();
    EXPECT_EQ(x.get(), 200);
    EXPECT_EQ(y.get(), 200);
}

TEST_P(SharingTest, TheSameDataTwiceInATaskAreRefused) {
    Scalar<int> x(runtime_, 0);
    Sequence sequence(runtime_);
    const auto nothing = [](const int&, const int&) {};
    EXPECT_THAT([&] { sequence.insert(nothing, commute(x), in(x)); },
                ThrowsMessage<Error>(HasSubstr("twice")));
    EXPECT_THAT([&] { sequence.insert(nothing, redux(x), redux(x)); },
                ThrowsMessage<Error>(HasSubstr("twice")));
    Runtime other;
    Scalar<int> foreign(other);
    EXPECT_THAT([&] { sequence.insert([](int&) {}, redux(foreign)); },
                ThrowsMessage<Error>(HasSubstr("another runtime")));
    sequence.wait();
}

}  // namespace
}  // namespace heddle
