// What tasks have to do with tasks that are not among their own children: data, futures and recordings of
// others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "heddle/await.hpp"
#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "heddle/recording.hpp"
#include "support/engines.hpp"
#include "support/wait_until.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::ThrowsMessage;

class NestedTasks : public test::ARuntimeOnEachEngine {
  protected:
    static void take_a_while() { std::this_thread::sleep_for(20ms); }
    /// `a` ends while a task waits for `go_on`, which is set when that was heard of, or after a while.
    static void expect_end_is_told(Sequence& a, std::atomic<bool>& go_on) {
        std::atomic<bool> too_late{false};
        std::jthread limit([&] {
            if (test::becomes_true([&] { return go_on.load(); }, 10s)) return;
            too_late = true;
            go_on = true;
        });
        a.wait();
        go_on = true;
        ASSERT_FALSE(too_late);
    }
};
INSTANTIATE_TEST_SUITE_P(Engines, NestedTasks, test::engines(), test::engine_name);

TEST_P(NestedTasks, ATaskWaitsForDataThatItDoesNotName) {
    Vector<int> data(runtime_, 1);
    Sequence sequence(runtime_);
    int seen = 0;
    sequence.insert(
        [](std::span<int> v) {
            take_a_while();
            v[0] = 7;
        },
        out(data));
    sequence.insert([&] { seen = data.get()[0]; });
    sequence.wait();
    EXPECT_EQ(seen, 7);
}

TEST_P(NestedTasks, ATaskDestroysDataThatOthersUse) {
    auto data = std::make_unique<Vector<int>>(runtime_, 1);
    Sequence sequence(runtime_);
    bool was_written = false, was_there = false;
    sequence.insert(
        [&](std::span<int> v) {
            take_a_while();
            v[0] = 7;
            was_written = true;
        },
        out(*data));
    sequence.insert([&] {
        data.reset();
        was_there = was_written;
    });
    sequence.wait();
    EXPECT_TRUE(was_there);
}

/// So large that its pages are gone once it is freed.
constexpr size_t kUnmappedInts = 16 << 20;

/// Where it cannot wait for those, since others wait for it by data.
TEST_P(NestedTasks, ATaskOfOtherDataDestroysDataThatOthersUse) {
    auto data = std::make_unique<Vector<int>>(runtime_, kUnmappedInts);
    Scalar<int> order(runtime_, 0);
    Sequence sequence(runtime_);
    std::atomic<bool> destroyed{false};
    sequence.insert(
        [&](std::span<int> v) {
            (void)test::becomes_true([&] { return destroyed.load(); }, 200ms);
            v[0] = v[kUnmappedInts - 1] = 7;
        },
        out(*data));
    sequence.insert(
        [&](int& value) {
            data.reset();
            destroyed = true;
            value = 1;
        },
        inout(order));
    sequence.insert([](int& value) { ++value; }, inout(order));
    sequence.wait();
    EXPECT_EQ(order.get(), 2);
}

/// Nor does it keep readers apart that came before and after it.
TEST_P(NestedTasks, ATaskOfOtherDataDoesNotWaitForReadersWhereThatCouldBeACircle) {
    if (test::has_heddles_graph(engine_.name))
        GTEST_SKIP() << "skipped: it waits, since a circle would be found";
    Runtime runtime(options(2));
    Scalar<int> read(runtime, 0), other(runtime, 0);
    BlockCondition reader;
    std::atomic<bool> waited{false};
    Sequence sequence(runtime);
    sequence.insert([&](const int&) { reader.block(); }, in(read));
    sequence.insert(
        [&](const int&) {
            read.wait();
            waited = true;
        },
        in(other));
    ASSERT_TRUE(test::becomes_true([&] { return waited.load(); }));
    reader.signal();
    sequence.wait();
}

/// One of the two waits would be for itself; the datum is there in any case.
TEST_P(NestedTasks, DataOutliveTasksThatWaitForTheOneThatDestroysThem) {
    if (!test::has_heddles_graph(engine_.name))
        GTEST_SKIP() << "skipped: an engine with a graph of its own does not say whom a task waits for";
    auto data = std::make_unique<Vector<int>>(runtime_, kUnmappedInts);
    Sequence destroys(runtime_), uses(runtime_);
    std::atomic<bool> waits{false};
    uses.insert(
        [&](std::span<int> v) {
            waits = true;
            try {
                destroys.wait();
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
            }
            v[0] = v[kUnmappedInts - 1] = 7;
        },
        inout(*data));
    destroys.insert([&] {
        (void)test::becomes_true([&] { return waits.load(); }, 200ms);
        take_a_while();
        data.reset();
    });
    destroys.wait();
    uses.wait();
}

/// Also where an engine that cannot pause tasks has no thread left to wait.
TEST_P(NestedTasks, DataOfATaskLiveAsLongAsItsChildrenUseThem) {
    Runtime runtime(options(2));
    Sequence sequence(runtime);
    constexpr int kTasks = 40;
    std::atomic<int> too_early{0};
    for (int i = 0; i < kTasks; ++i)
        sequence.insert([&] {
            std::optional<Sequence> children(std::in_place, runtime);
            bool done = false;
            {
                Vector<int> own(runtime, 1);
                children->insert(
                    [&](std::span<int>) {
                        std::this_thread::sleep_for(1ms);
                        done = true;
                    },
                    inout(own));
            }
            if (!done) ++too_early;
        });
    sequence.wait();
    EXPECT_EQ(too_early, 0);
}

TEST_P(NestedTasks, ATaskDestroysARecordingThatIsReplayed) {
    Scalar<int> data(runtime_, 0);
    std::optional<Recording> recording(std::in_place, runtime_);
    recording->insert(
        [](int& v) {
            take_a_while();
            ++v;
        },
        inout(data));
    Sequence sequence(runtime_), other(runtime_);
    recording->replay(sequence);
    other.insert([&] { recording.reset(); });
    other.wait();
    sequence.wait();
    EXPECT_EQ(data.get(), 1);
}

TEST_P(NestedTasks, AChildFollowsTheFutureThatItNames) {
    Sequence sequence(runtime_);
    bool done = false;
    const Future<int> seven = sequence.async([&] {
        take_a_while();
        done = true;
        return 7;
    });
    int seen = 0, doubled = 0;
    bool was_done = false;
    sequence.insert([&] {
        Sequence children(runtime_);
        children.insert([&](int v) { seen = v; }, in(seven));
        children.insert([&] { was_done = done; }, after(seven));
        const Future<int> twice = children.async([](int v) { return 2 * v; }, in(seven));
        doubled = twice.get();
        children.wait();
    });
    sequence.wait();
    EXPECT_EQ(seen, 7);
    EXPECT_EQ(doubled, 14);
    EXPECT_TRUE(was_done);
}

TEST_P(NestedTasks, AChildFailsWithTheFutureThatItNames) {
    Sequence sequence(runtime_), others(runtime_);
    const Future<int> failing = others.async([]() -> int {
        take_a_while();
        throw Error(ErrorCode::kBadInput, "no seven");
    });
    bool ran = false;
    std::string child, result;
    sequence.insert([&] {
        Sequence children(runtime_);
        children.insert([&](int) { ran = true; }, in(failing));
        children.insert([&] { ran = true; }, after(failing));
        const Future<int> twice = children.async([](int v) { return 2 * v; }, in(failing));
        try {
            (void)twice.get();
        } catch (const Error& error) {
            result = error.what();
        }
        try {
            children.wait();
        } catch (const Error& error) {
            child = error.what();
        }
    });
    sequence.wait();
    EXPECT_THAT([&] { others.wait(); }, ThrowsMessage<Error>(HasSubstr("no seven")));
    EXPECT_FALSE(ran);
    EXPECT_THAT(child, HasSubstr("no seven"));
    EXPECT_THAT(result, HasSubstr("no seven"));
}

TEST_P(NestedTasks, ATaskAtTheRootFollowsTheFutureOfANestedOne) {
    Sequence outer(runtime_), later(runtime_);
    int seen = 0;
    outer.insert([&] {
        Sequence children(runtime_);
        const Future<int> seven = children.async([] {
            take_a_while();
            return 7;
        });
        later.insert([&](int v) { seen = v; }, in(seven));
    });
    outer.wait();
    later.wait();
    EXPECT_EQ(seen, 7);
}

/// Nobody waits for ever: who sees the circle says so, and engines that do not leave it out.
TEST_P(NestedTasks, DataThatATaskAfterTheCallerUsesAreNotWaitedForInACircle) {
    Scalar<int> data(runtime_, 0), order(runtime_, 0);
    BlockCondition inserted;
    Sequence sequence(runtime_);
    std::string refused;
    sequence.insert([](int& v) { v = 7; }, out(data));
    sequence.insert(
        [&](int&) {
            inserted.block();
            try {
                (void)data.get();
            } catch (const Error& error) {
                refused = error.what();
            }
        },
        inout(order));
    sequence.insert([](const int&, int&) {}, in(data), inout(order));
    inserted.signal();
    sequence.wait();
    EXPECT_THAT(refused, HasSubstr(test::has_heddles_graph(GetParam()) ? "comes after it by the data" : ""));
}

/// A task of its sequence may still run when the parent's has gone, and asks for it.
TEST_P(NestedTasks, ChildrenMayOutliveTheSequenceOfTheirParent) {
    std::unique_ptr<Sequence> children;
    BlockCondition go_on;
    std::atomic<bool> waited{false};
    {
        Sequence sequence(runtime_);
        sequence.insert([&] {
            children = std::make_unique<Sequence>(runtime_);
            children->insert([&] {
                go_on.block();
                Sequence first(runtime_), second(runtime_);
                bool done = false;
                second.insert([&] { done = true; });
                second.wait();
                waited = done;
            });
        });
        sequence.wait();
    }
    // Some that may come to lie where that one was.
    std::vector<std::unique_ptr<Sequence>> others;
    for (int i = 0; i < 8; ++i) others.push_back(std::make_unique<Sequence>(runtime_));
    go_on.signal();
    children->wait();
    EXPECT_TRUE(waited);
}

/// Each task has the sequence that it is in, and makes the next one.
TEST_P(NestedTasks, ARuntimeWaitsForTasksThatItsTasksDetach) {
    std::atomic<int> ran{0};
    std::function<void(Runtime&, int)> detach;
    detach = [&](Runtime& runtime, int more) {
        auto own = std::make_shared<Sequence>(runtime);
        own->insert([&, own, more] {
            std::this_thread::sleep_for(2ms);
            if (more > 0) detach(runtime, more - 1);
            ++ran;
        });
    };
    {
        Runtime runtime(options());
        detach(runtime, 9);
    }
    EXPECT_EQ(ran, 10);
}

/// Each was made by the one before it, which is gone. Slow where all of them stay.
TEST_P(NestedTasks, TasksMayRenewThemselvesWithoutEnd) {
    constexpr int kTimes = 20'000;
    std::atomic<int> ran{0};
    std::function<void(Runtime&)> renew;
    renew = [&](Runtime& runtime) {
        auto own = std::make_shared<Sequence>(runtime);
        own->insert([&, own] {
            if (++ran < kTimes) renew(runtime);
        });
    };
    RuntimeOptions of_small_stacks = options(1);
    of_small_stacks.stack_bytes = 64 << 10;
    {
        Runtime runtime(of_small_stacks);
        renew(runtime);
    }
    EXPECT_EQ(ran, kTimes);
}

TEST_P(NestedTasks, TheEndOfASequenceIsToldBeforeTheNextTaskOfItsWorkerEnds) {
    Runtime runtime(options(2));
    if (runtime.cpus().count() < 2) GTEST_SKIP() << "one CPU";
    Sequence a(runtime), b(runtime);
    std::atomic<bool> begun{false}, go_on{false};
    a.insert([] {});
    b.insert([&] {
        begun = true;
        while (!go_on) std::this_thread::yield();
    });
    (void)test::becomes_true([&] { return begun.load(); }, 500ms);
    expect_end_is_told(a, go_on);
    b.wait();
}

TEST_P(NestedTasks, TheEndOfASequenceIsToldBeforeAPausedTaskGoesOnInItsWorker) {
    Runtime runtime(options(2));
    if (runtime.cpus().count() < 2) GTEST_SKIP() << "one CPU";
    for (int round = 0; round < 20; ++round) {
        Sequence a(runtime), b(runtime);
        BlockCondition paused;
        std::atomic<bool> goes_on{false}, go_on{false};
        b.insert([&] {
            paused.block();
            goes_on = true;
            while (!go_on) std::this_thread::yield();
        });
        a.insert([&] { paused.signal(); });
        (void)test::becomes_true([&] { return goes_on.load(); }, 5s);
        expect_end_is_told(a, go_on);
        b.wait();
        if (HasFatalFailure()) return;
    }
}

class WokenTogether : public testing::Test {
  protected:
    void SetUp() override {
        if (runtime_.cpus().count() < 2) GTEST_SKIP() << "one CPU";
    }
    void meet() {
        ++met_;
        if (!test::becomes_true([&] { return met_ >= 2; }, 5s)) ++alone_;
    }

    Runtime runtime_{RuntimeOptions{.engine = "native", .cpus = {}, .workers = 2}};
    std::atomic<int> met_{0}, alone_{0};
};

/// Each waits for the other, and both workers are idle.
TEST_F(WokenTogether, ByATimerTasksRunAtOnce) {
    for (int round = 0; round < 20; ++round) {
        met_ = 0;
        Sequence sequence(runtime_);
        const auto at = std::chrono::steady_clock::now() + 50ms;
        for (int i = 0; i < 2; ++i)
            sequence.insert([this, at] {
                sleep_until(at);
                meet();
            });
        sequence.wait();
        ASSERT_EQ(alone_, 0) << "round " << round;
    }
}

TEST_F(WokenTogether, ByAThreadTasksRunAtOnce) {
    for (int round = 0; round < 20; ++round) {
        met_ = 0;
        BlockCondition first, second;
        Sequence sequence(runtime_);
        sequence.insert([&] {
            first.block();
            meet();
        });
        sequence.insert([&] {
            second.block();
            meet();
        });
        std::jthread signaller([&] {
            std::this_thread::sleep_for(50ms);
            first.signal();
            second.signal();
        });
        sequence.wait();
        ASSERT_EQ(alone_, 0) << "round " << round;
    }
}

TEST(TileMatrices, WhatCannotBeCutIsRefused) {
    Runtime runtime;
    std::vector<int> memory(100);
    const auto refused = [](const char* why) { return ThrowsMessage<Error>(HasSubstr(why)); };
    EXPECT_THAT([&] { (TileMatrix<int>(runtime, 0, 4, 2)); }, refused("at least one row and column"));
    EXPECT_THAT([&] { (TileMatrix<int>(runtime, 4, 0, 2)); }, refused("at least one row and column"));
    EXPECT_THAT([&] { (TileMatrix<int>(runtime, 4, 4, 0)); }, refused("tiles that are not empty"));
    EXPECT_THAT(
        [&] {
            (TileMatrix<int>(runtime, MatrixView<int>{memory.data(), 8, 8, 4}, 4));
        },
        refused("a leading dimension of 4 is less than the 8 rows"));
    EXPECT_THAT([&] { (TileMatrix<int>(runtime, size_t{1} << 40, size_t{1} << 40, 1)); },
                refused("are too many"));
    // One tile, however large it may be.
    TileMatrix<int> one(runtime, 3, 4, SIZE_MAX);
    EXPECT_EQ(one.tile_rows() * one.tile_columns(), 1u);
    EXPECT_EQ(one.tile(0, 0).columns(), 4u);
}

}  // namespace
}  // namespace heddle
