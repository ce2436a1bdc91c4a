// Futures: the result of a task for whoever waits, outside and inside of tasks, and for later tasks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "support/engines.hpp"
#include "tasks/data_state.hpp"
#include "tasks/runtime_state.hpp"

namespace heddle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class FutureTest : public test::ARuntimeOnEachEngine {};
INSTANTIATE_TEST_SUITE_P(Engines, FutureTest, test::engines(), test::engine_name);

TEST_P(FutureTest, GivesWhatTheTaskReturns) {
    Vector<int> x(runtime_, 4);
    Sequence sequence(runtime_);
    sequence.insert([](std::span<int> v) { std::ranges::fill(v, 3); }, out(x));
    const Future<std::string> text = sequence.async(
        [](std::span<const int> v) { return std::string(v.size(), 'a') + std::to_string(v[2]); }, in(x));
    const Future<void> nothing = sequence.async({.name = "nothing"}, [] {});
    EXPECT_EQ(text.get(), "aaaa3");
    nothing.get();
    EXPECT_TRUE(nothing.ready());
    EXPECT_EQ(text.get(), "aaaa3");
}

TEST_P(FutureTest, IsAnArgumentOfLaterTasks) {
    Sequence sequence(runtime_), other(runtime_);
    BlockCondition go_on;
    std::atomic<bool> done{false};
    const auto one = sequence.async([&] {
        go_on.block();
        return std::make_unique<int>(20);
    });
    const auto two =
        other.async([](const std::unique_ptr<int>& v, int factor) { return *v * factor; }, in(one), value(2));
    const auto three = sequence.async([&] { done = true; }, after(two));
    const auto four = other.async([&](const int& v) { return done ? v + 2 : 0; }, after(three), in(two));
    EXPECT_FALSE(one.ready());
    go_on.signal();
    EXPECT_EQ(four.get(), 42);
}

TEST_P(FutureTest, ATaskWaitsForAFutureOfAnySequence) {
    Runtime runtime(options(1));
    Sequence sequence(runtime), later(runtime);
    std::vector<Future<int>> parts;
    BlockCondition all_inserted;
    const auto sum = sequence.async([&] {
        all_inserted.block();
        int total = 0;
        for (const Future<int>& part : parts) total += part.get();
        return total;
    });
    for (int i = 0; i < 100; ++i) parts.push_back(later.async([i] { return i; }));
    all_inserted.signal();
    EXPECT_EQ(sum.get(), 4'950);
}

TEST_P(FutureTest, ChildrenReturnToTheirParent) {
    struct Fibonacci {
        Runtime& runtime;
        int operator()(int n) const {
            if (n < 2) return n;
            Sequence children(runtime);
            const auto one = children.async(*this, value(n - 1));
            const auto two = children.async(*this, value(n - 2));
            return one.get() + two.get();
        }
    };
    Sequence sequence(runtime_);
    EXPECT_EQ(sequence.async(Fibonacci{runtime_}, value(7)).get(), 13);
}

TEST_P(FutureTest, CarriesTheErrorToAllThatAskAndOn) {
    Scalar<int> x(runtime_, 1);
    Sequence sequence(runtime_), other(runtime_);
    std::atomic<bool> ran{false};
    const auto fails =
        sequence.async([](int&) -> int { throw std::runtime_error("no such file"); }, inout(x));
    const auto follows = sequence.async([&](const int& v) { return ran = true, v; }, in(fails));
    const auto reads = other.async([&](const int& v) { return ran = true, v; }, in(x));
    const auto fine = other.async([] { return 5; });
    for (int i = 0; i < 2; ++i)
        EXPECT_THAT([&] { (void)fails.get(); }, ThrowsMessage<std::runtime_error>(HasSubstr("no such file")));
    EXPECT_THAT([&] { (void)follows.get(); }, ThrowsMessage<std::runtime_error>(HasSubstr("no such file")));
    EXPECT_THAT([&] { (void)reads.get(); }, ThrowsMessage<std::runtime_error>(HasSubstr("no such file")));
    EXPECT_EQ(fine.get(), 5);
    EXPECT_THAT([&] { sequence.wait(); }, ThrowsMessage<std::runtime_error>(HasSubstr("no such file")));
    EXPECT_THAT([&] { other.wait(); }, ThrowsMessage<std::runtime_error>(HasSubstr("no such file")));
    // The sequence has told it; the future has no value all the same.
    const auto late = sequence.async([&](const int& v) { return ran = true, v; }, in(fails));
    EXPECT_THAT([&] { (void)late.get(); }, ThrowsMessage<std::runtime_error>(HasSubstr("no such file")));
    EXPECT_THAT([&] { sequence.wait(); }, ThrowsMessage<std::runtime_error>(HasSubstr("no such file")));
    EXPECT_FALSE(ran);
}

/// Has lost what it kept.
class LosingKeeper final : public DataKeeper {
  public:
    ~LosingKeeper() { let_all_go(); }
    void bring_home(DataState& /*data*/, AccessMode /*how*/) override {
        throw Error(ErrorCode::kSystem, "the device is gone");
    }
    void forget(DataState& /*data*/) noexcept override {}
};

TEST_P(FutureTest, FailsWhereItsFunctionIsNeverReached) {
    Scalar<int> x(runtime_, 1);
    LosingKeeper keeper;
    DataState& state = DataState::of(x.view());
    runtime_.state().kept.keep(state, keeper, [] {});
    Sequence sequence(runtime_);
    Future<int> future = sequence.async([](const int& v) { return v; }, in(x));
    EXPECT_THAT([&] { (void)future.get(); }, ThrowsMessage<Error>(HasSubstr("the device is gone")));
    EXPECT_THAT([&] { sequence.wait(); }, ThrowsMessage<Error>(HasSubstr("the device is gone")));
}

TEST_P(FutureTest, IsDroppedWithoutAWaitAndFreesItsValue) {
    const auto alive = std::make_shared<int>(7);
    {
        Sequence sequence(runtime_);
        BlockCondition go_on;
        for (int i = 0; i < 1'000; ++i) (void)sequence.async([alive] { return alive; });
        (void)sequence.async([&] { go_on.block(); });
        go_on.signal();
        sequence.wait();
    }
    EXPECT_EQ(alive.use_count(), 1);
}

TEST_P(FutureTest, ManyThreadsAndTasksWaitForOne) {
    Sequence sequence(runtime_), waiters(runtime_);
    BlockCondition go_on;
    const auto one = sequence.async([&] {
        go_on.block();
        return 3L;
    });
    std::atomic<long> sum{0};
    for (int i = 0; i < 8; ++i) waiters.insert([&] { sum += one.get(); });
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) threads.emplace_back([&] { sum += one.get(); });
        go_on.signal();
    }
    waiters.wait();
    EXPECT_EQ(sum, 36);
}

TEST_P(FutureTest, BadUseIsRefused) {
    Sequence sequence(runtime_);
    Future<int> self;
    BlockCondition assigned;
    EXPECT_FALSE(self.valid());
    EXPECT_THAT([&] { (void)self.get(); }, ThrowsMessage<Error>(HasSubstr("no task's")));
    EXPECT_THAT([&] { sequence.insert([](const int&) {}, in(self)); },
                ThrowsMessage<Error>(HasSubstr("no task's")));
    self = sequence.async([&] {
        assigned.block();
        return self.get();
    });
    assigned.signal();
    EXPECT_THAT([&] { (void)self.get(); }, ThrowsMessage<Error>(HasSubstr("its own future")));
    EXPECT_THAT([&] { sequence.wait(); }, ThrowsMessage<Error>(HasSubstr("its own future")));
    Runtime other;
    Sequence there(other);
    EXPECT_THAT([&] { there.insert([] {}, after(self)); },
                ThrowsMessage<Error>(HasSubstr("another runtime")));
}

}  // namespace
}  // namespace heddle
