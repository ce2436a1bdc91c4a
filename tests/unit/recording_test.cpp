// Recorded tasks run with each replay as if they were inserted anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "heddle/await.hpp"
#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "heddle/recording.hpp"
#include "support/engines.hpp"
#include "support/sanitized.hpp"
#include "support/seeds.hpp"

namespace heddle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class RecordingTest : public test::ARuntimeOnEachEngine {};
INSTANTIATE_TEST_SUITE_P(Engines, RecordingTest, test::engines(), test::engine_name);

TEST_P(RecordingTest, NothingRunsBeforeAReplayAndAllWithEach) {
    Scalar<long> x(runtime_, 1), y(runtime_, 0);
    Recording recording(runtime_);
    recording.insert([](long& v) { v = v * 3 % 1'000'003; }, inout(x));
    for (int i = 0; i < 5; ++i) recording.insert([](const long& v, long& sum) { sum += v; }, in(x), inout(y));
    recording.insert([](long& v) { ++v; }, inout(x));
    Sequence sequence(runtime_);
    sequence.wait();
    EXPECT_EQ(x.get(), 1);
    EXPECT_EQ(recording.size(), 7U);
    long expected = 1, sum = 0;
    for (int i = 0; i < 100; ++i) {
        recording.replay(sequence);
        expected = expected * 3 % 1'000'003;
        sum += 5 * expected++;
    }
    sequence.wait();
    EXPECT_EQ(x.get(), expected);
    EXPECT_EQ(y.get(), sum);
}

TEST_P(RecordingTest, ValuesAndFunctionsAreAsTheyWereRecorded) {
    std::atomic<int> wrong{0};
    Recording recording(runtime_);
    recording.insert([&](std::vector<int>& v) { wrong += v.size() != 3, v.clear(); },
                     value(std::vector<int>{1, 2, 3}));
    recording.insert([&, calls = 0]() mutable { wrong += ++calls != 1; });
    Sequence sequence(runtime_);
    for (int i = 0; i < 10; ++i) recording.replay(sequence);
    sequence.wait();
    EXPECT_EQ(wrong, 0);
}

TEST_P(RecordingTest, FollowsAndPrecedesOtherTasksAndOtherRecordings) {
    Scalar<long> x(runtime_, 0), y(runtime_, 0);
    Recording add(runtime_), times(runtime_);
    for (int i = 0; i < 3; ++i) add.insert([](long& v, const long& by) { v += by; }, inout(x), in(y));
    times.insert([](long& v) { v *= 2; }, inout(x));
    Sequence sequence(runtime_), other(runtime_);
    long expected = 0;
    for (long i = 0; i < 20; ++i) {
        other.insert([i](long& v) { v = i; }, out(y));
        add.replay(sequence);
        times.replay(other);
        sequence.insert([](long& v) { v %= 10'007; }, inout(x));
        expected = (expected + 3 * i) * 2 % 10'007;
    }
    sequence.wait();
    other.wait();
    EXPECT_EQ(x.get(), expected);
}

TEST_P(RecordingTest, AnErrorCancelsWhatFollowsInsideAndOutside) {
    Scalar<int> a(runtime_, 0), b(runtime_, 0), c(runtime_, 0);
    std::atomic<int> ran{0};
    bool fails = true;
    Recording recording(runtime_);
    recording.insert(
        [&](int& v) {
            if (fails) throw std::runtime_error("no convergence");
            v = 1;
        },
        out(a));
    recording.insert([&](const int& v, int& w) { ++ran, w += v; }, in(a), inout(b));
    recording.insert([&](int& v) { ++v; }, inout(c));
    Sequence sequence(runtime_);
    recording.replay(sequence);
    sequence.insert([&](const int&) { ++ran; }, in(b));
    EXPECT_THAT([&] { sequence.wait(); }, ThrowsMessage<std::runtime_error>(HasSubstr("no convergence")));
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(c.get(), 1);
    fails = false;
    recording.replay(sequence);
    sequence.insert([&](const int&) { ++ran; }, in(b));
    sequence.wait();
    EXPECT_EQ(ran, 2);
    EXPECT_EQ(b.get(), 1);
    // Cancelled as a whole for what came before it.
    sequence.insert([](int&) { throw std::runtime_error("before"); }, inout(b));
    recording.replay(sequence);
    EXPECT_THAT([&] { sequence.wait(); }, ThrowsMessage<std::runtime_error>(HasSubstr("before")));
    EXPECT_EQ(ran, 2);
    recording.replay(sequence);
    sequence.wait();
    EXPECT_EQ(ran, 3);
}

TEST_P(RecordingTest, TasksInItPauseInsertAndHaveTheirPlaces) {
    Scalar<int> x(runtime_, 0);
    std::vector<BlockCondition> conditions(3);
    Recording recording(runtime_);
    for (BlockCondition& condition : conditions)
        recording.insert(
            {.priority = 1}, [&](int& v) { condition.block(), ++v; }, commute(x));
    recording.insert(
        {.cpus = CpuSet{runtime_.cpus().first()}},
        [&](int&) {
            Sequence children(runtime_);
            for (int i = 0; i < 10; ++i) children.insert([](int& v) { v += 10; }, inout(x));
            children.wait();
        },
        inout(x));
    Sequence sequence(runtime_), other(runtime_);
    for (int round = 1; round <= 5; ++round) {
        recording.replay(sequence);
        other.insert([&] {
            for (BlockCondition& condition : conditions) condition.signal();
        });
        sequence.wait();
        ASSERT_EQ(x.get(), 103 * round);
    }
}

TEST_P(RecordingTest, ManyThreadsReplayTheSame) {
    Scalar<long> x(runtime_, 0);
    Recording recording(runtime_);
    for (int i = 0; i < 10; ++i) recording.insert([](long& v) { ++v; }, inout(x));
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            Sequence own(runtime_);
            for (int i = 0; i < 50; ++i) recording.replay(own);
            own.wait();
        });
    threads.clear();
    EXPECT_EQ(x.get(), 2'000);
}

TEST_P(RecordingTest, WaitsForReplaysThatTasksHaveInserted) {
    Scalar<int> x(runtime_, 0);
    std::atomic<int> ran{0};
    std::optional<Sequence> inner, outer(std::in_place, runtime_);
    std::optional<Recording> recording(std::in_place, runtime_);
    for (int i = 0; i < 5; ++i)
        recording->insert(
            [&ran](int&) {
                sleep_for(std::chrono::milliseconds(2));
                ++ran;
            },
            inout(x));
    outer->insert([&] {
        inner.emplace(runtime_);
        for (int i = 0; i < 3; ++i) recording->replay(*inner);
    });
    outer->wait();
    recording.reset();
    EXPECT_EQ(ran, 15);
    // One that is cancelled has ended, too.
    recording.emplace(runtime_);
    recording->insert([&ran](int&) { ++ran; }, inout(x));
    outer->insert([](int&) { throw std::runtime_error("bad"); }, inout(x));
    recording->replay(*outer);
    recording.reset();
    EXPECT_EQ(ran, 15);
    EXPECT_THROW(outer->wait(), std::runtime_error);
}

TEST_P(RecordingTest, ATaskDestroysTheOneThatItIsOf) {
    auto captured = std::make_shared<int>(0);
    std::optional<Recording> recording(std::in_place, runtime_);
    {
        Scalar<int> x(runtime_, 0);
        Sequence sequence(runtime_);
        recording->insert([](int& v) { ++v; }, inout(x));
        recording->insert(
            [&recording, captured](int& v) {
                if (++v == 4) recording.reset();
            },
            inout(x));
        recording->insert([captured](const int& v) { *captured = v; }, in(x));
        for (int i = 0; i < 3; ++i) recording->replay(sequence);
        sequence.wait();
        EXPECT_FALSE(recording);
        EXPECT_EQ(x.get(), 6);
    }
    EXPECT_EQ(*captured, 6);
    EXPECT_EQ(captured.use_count(), 1) << "its tasks are still there";
}

TEST_P(RecordingTest, BadUseIsRefused) {
    Scalar<int> x(runtime_, 0);
    auto gone = std::make_unique<Scalar<int>>(runtime_, 0);
    Runtime other;
    Sequence sequence(runtime_), there(other);
    Scalar<int> foreign(other);
    Recording recording(runtime_), empty(runtime_);
    recording.insert([](int& v, int& w) { ++v, ++w; }, inout(x), inout(*gone));
    EXPECT_THAT([&] { recording.insert([](int&) {}, out(foreign)); },
                ThrowsMessage<Error>(HasSubstr("another runtime")));
    EXPECT_THAT([&] { recording.replay(there); }, ThrowsMessage<Error>(HasSubstr("another runtime")));
    EXPECT_THAT([&] { recording.insert({.cpus = CpuSet()}, [] {}); },
                ThrowsMessage<Error>(HasSubstr("empty")));
    recording.replay(sequence);
    empty.replay(sequence);
    EXPECT_THAT([&] { recording.insert([] {}); }, ThrowsMessage<Error>(HasSubstr("takes no more")));
    gone.reset();
    EXPECT_THAT([&] { recording.replay(sequence); }, ThrowsMessage<Error>(HasSubstr("were released")));
    sequence.wait();
    EXPECT_EQ(x.get(), 1);
    // To wait inside for the sequence that it is replayed into.
    Recording circle(runtime_);
    circle.insert([&] { sequence.wait(); });
    circle.replay(sequence);
    EXPECT_THAT([&] { sequence.wait(); }, ThrowsMessage<Error>(HasSubstr("wait for itself")));
}

/// Steps that every engine has to do in an order that gives the same sums.
TEST_P(RecordingTest, RandomRecordingsGiveTheSequentialResult) {
    constexpr size_t kData = 8;
    using Values = std::array<uint64_t, kData>;
    const auto [first, count] = test::seeds(test::kSanitized ? 30 : 500);
    for (uint64_t seed = first; seed < first + count; ++seed) {
        std::mt19937_64 random(seed);
        Values expected{};
        std::vector<Scalar<uint64_t>> data;
        for (size_t i = 0; i < kData; ++i) data.emplace_back(runtime_);
        Recording recording(runtime_);
        std::vector<std::function<void()>> steps;
        for (int step = 0; step < 60; ++step) {
            const uint64_t n = random();
            const size_t a = random() % kData, b = (a + 1 + random() % (kData - 1)) % kData;
            uint64_t &x = expected[a], &y = expected[b];
            const TaskOptions with{.priority = random() % 8 == 0 ? 1 : 0};
            switch (random() % 5) {
                case 0:
                    recording.insert(
                        with, [n](const uint64_t& u, uint64_t& v) { v = v * 31 + (u ^ n); }, in(data[a]),
                        inout(data[b]));
                    steps.emplace_back([&x, &y, n] { y = y * 31 + (x ^ n); });
                    break;
                case 1:
                    recording.insert(
                        with, [n](uint64_t& v) { v = n; }, out(data[a]));
                    steps.emplace_back([&x, n] { x = n; });
                    break;
                case 2:
                    recording.insert(
                        with, [n](uint64_t& u, uint64_t& v) { u += n, v += 2 * n; }, commute(data[a]),
                        commute(data[b]));
                    steps.emplace_back([&x, &y, n] { x += n, y += 2 * n; });
                    break;
                case 3:
                    recording.insert(
                        with, [n](uint64_t& u, const uint64_t& v) { u += n * v; }, redux(data[a]),
                        in(data[b]));
                    steps.emplace_back([&x, &y, n] { x += n * y; });
                    break;
                default:
                    recording.insert(
                        with, [n](uint64_t& u) { u = std::max(u, n); },
                        redux(data[a], uint64_t{0}, [](uint64_t u, uint64_t v) { return std::max(u, v); }));
                    steps.emplace_back([&x, n] { x = std::max(x, n); });
            }
        }
        Sequence sequence(runtime_);
        for (int round = 0; round < 3; ++round) {
            recording.replay(sequence);
            for (const auto& step : steps) step();
        }
        sequence.wait();
        Values values{};
        for (size_t i = 0; i < kData; ++i) values[i] = data[i].get();
        ASSERT_EQ(values, expected) << "seed " << seed;
    }
}

/// More than the stack of a task.
TEST_P(RecordingTest, ValuesMayBeLarge) {
    using Table = std::array<double, 1 << 14>;
    const auto table = std::make_unique<Table>();
    table->fill(1);
    const auto large = [table = *table](double& sum) mutable {
        for (double& v : table) sum += v *= 2;
    };
    Scalar<double> sum(runtime_, 0);
    Recording recording(runtime_);
    recording.insert(
        [](Table& values, double& s) {
            for (double& v : values) s += v *= 2;
        },
        value(*table), inout(sum));
    recording.insert(large, inout(sum));
    Sequence sequence(runtime_);
    for (int i = 0; i < 3; ++i) recording.replay(sequence);
    sequence.wait();
    EXPECT_EQ(sum.get(), 3 * 2 * 2.0 * (1 << 14));
}

TEST_P(RecordingTest, TwoTasksThatReplayItAtOnceAreTold) {
    std::atomic<bool> inside = false, told = false;
    std::atomic<int> runs = 0;
    Scalar<long> x(runtime_, 0), copy(runtime_, 0);
    Recording recording(runtime_);
    recording.insert(
        [&](long& v) {
            inside = true;
            inside.notify_all();
            while (!told) sleep_for(std::chrono::milliseconds(1));  // a pause: others need its thread
            ++v, ++runs;
        },
        inout(x));
    recording.insert([](const long& v, long& c) { c = v; }, in(x), inout(copy));
    std::string error;
    std::thread first([&] {
        Sequence sequence(runtime_);
        sequence.insert([&] {
            Sequence children(runtime_);
            recording.replay(children);
            children.wait();
        });
        sequence.wait();
    });
    inside.wait(false);
    std::thread second([&] {
        Sequence sequence(runtime_);
        sequence.insert([&] {
            Sequence children(runtime_);
            recording.replay(children);
            try {
                children.wait();
            } catch (const Error& e) {
                error = e.what();
            }
            told = true;
        });
        sequence.wait();
    });
    first.join();
    second.join();
    EXPECT_EQ(copy.get(), 1) << "who was refused took nothing from who replays it";
    EXPECT_NE(error.find("a recording was to be replayed while it is being replayed"), std::string::npos)
        << error;
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(x.get(), 1);
    Sequence sequence(runtime_);
    recording.replay(sequence);
    sequence.wait();
    EXPECT_EQ(x.get(), 2) << "and it can be replayed again";
}

TEST(RecordingsTest, AreReplayedOnOneEngineAfterTheOther) {
    Runtime runtime;
    Scalar<long> x(runtime, 0), y(runtime, 0);
    Recording recording(runtime);
    for (int i = 0; i < 20; ++i) {
        recording.insert([](long& v) { ++v; }, commute(x));
        recording.insert([](long& v, const long& by) { v += by; }, redux(y), in(x));
    }
    Sequence sequence(runtime);
    long expected = 0, sum = 0;
    for (int round = 0; round < 2; ++round)
        for (const EngineInfo& engine : Runtime::engines()) {
            if (!engine.available) continue;
            runtime.switch_engine(engine.name);
            for (int i = 0; i < 3; ++i) recording.replay(sequence);
            sequence.wait();
            for (int i = 0; i < 60; ++i) sum += ++expected;
            ASSERT_EQ(x.get(), expected) << engine.name;
            ASSERT_EQ(y.get(), sum) << engine.name;
        }
}

}  // namespace
}  // namespace heddle
