// Waits in tasks that would never end are refused, and no others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "heddle/task.hpp"
#include "support/engines.hpp"

namespace heddle {
namespace {

using testing::HasSubstr;

/// Counts in `refused` a wait that is.
template <class Wait>
void wait_or_count(const Wait& wait, std::atomic<int>& refused) {
    try {
        wait();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
        EXPECT_THAT(error.what(), HasSubstr("neither would ever be done"));
        ++refused;
    }
}

class InnerWaits : public test::OnEachEngine {
  protected:
    /// Each sequence has a task that waits for the next one, the last for the first.
    static void wait_in_a_circle(const std::vector<Sequence*>& sequences) {
        std::atomic<int> refused{0};
        std::vector<BlockCondition> inserted(sequences.size());
        for (size_t i = 0; i < sequences.size(); ++i)
            sequences[i]->insert([&, i] {
                inserted[i].block();
                wait_or_count([&] { sequences[(i + 1) % sequences.size()]->wait(); }, refused);
            });
        for (BlockCondition& condition : inserted) condition.signal();
        for (Sequence* sequence : sequences) sequence->wait();
        EXPECT_EQ(refused, 1);
    }
};

TEST_P(InnerWaits, OfTwoSequencesThatWaitForEachOtherOneIsRefused) {
    Runtime runtime(options());
    for (int round = 0; round < 20; ++round) {
        Sequence a(runtime), b(runtime);
        wait_in_a_circle({&a, &b});
    }
}

TEST_P(InnerWaits, NoCircleIsTooLong) {
    Runtime runtime(options());
    for (int round = 0; round < 20; ++round) {
        Sequence a(runtime), b(runtime), c(runtime), d(runtime), e(runtime);
        wait_in_a_circle({&a, &b, &c, &d, &e});
    }
}

TEST_P(InnerWaits, ACircleAcrossRuntimesIsFound) {
    Runtime one(options()), other(options());
    Sequence a(one), b(other), c(one);
    wait_in_a_circle({&a, &b, &c});
}

TEST_P(InnerWaits, ManyWaysToOneSequenceAreNoCircle) {
    Runtime runtime(options());
    Sequence last(runtime), a(runtime), b(runtime), top(runtime);
    BlockCondition inserted;
    std::atomic<int> refused{0};
    last.insert([&] { inserted.block(); });
    for (Sequence* middle : {&a, &b})
        for (int i = 0; i < 3; ++i) middle->insert([&] { wait_or_count([&] { last.wait(); }, refused); });
    for (Sequence* middle : {&a, &b, &a})
        top.insert([&, middle] { wait_or_count([&] { middle->wait(); }, refused); });
    inserted.signal();
    top.wait();
    EXPECT_EQ(refused, 0);
}

TEST_P(InnerWaits, ForAllOfAnotherRuntimeIsNot) {
    Runtime runtime(options()), other(options());
    Sequence sequence(runtime), work(other);
    std::atomic<int> ran{0};
    for (int i = 0; i < 100; ++i) work.insert([&] { ++ran; });
    sequence.insert([&] {
        other.wait();
        EXPECT_EQ(ran, 100);
    });
    sequence.wait();
}

TEST_P(InnerWaits, ASequenceMayGoInTheLastOfItsOwnTasks) {
    Runtime runtime(options());
    std::atomic<int> ran{0};
    for (int round = 0; round < 50; ++round) {
        auto sequence = std::make_shared<Sequence>(runtime);
        Sequence& here = *sequence;
        BlockCondition inserted;
        here.insert([&ran, &inserted, held = std::move(sequence)] {
            inserted.block();
            ++ran;
        });
        for (int i = 0; i < 3; ++i) here.insert([&ran] { ++ran; });
        inserted.signal();
        runtime.wait();
        EXPECT_EQ(ran, 4 * (round + 1));
    }
}

/// Each of `count` tasks waits for the next one's future, the last for the first's.
TEST_P(InnerWaits, OfTasksThatWaitForEachOthersFuturesOneIsRefused) {
    Runtime runtime(options());
    for (int round = 0; round < 30; ++round) {
        const size_t count = round % 2 == 0 ? 2 : 5;
        Sequence one(runtime), other(runtime);
        std::vector<Future<size_t>> futures(count);
        std::vector<BlockCondition> known(count);
        std::atomic<int> refused{0};
        for (size_t i = 0; i < count; ++i)
            futures[i] = (i % 2 == 0 ? one : other).async([&, i] {
                known[i].block();
                wait_or_count([&] { futures[(i + 1) % count].wait(); }, refused);
                return i;
            });
        for (BlockCondition& condition : known) condition.signal();
        one.wait();
        other.wait();
        EXPECT_EQ(refused, 1);
        for (size_t i = 0; i < count; ++i) EXPECT_EQ(futures[i].get(), i);
    }
}

TEST_P(InnerWaits, ACircleThroughASequenceAndAFutureIsFound) {
    Runtime runtime(options());
    for (int round = 0; round < 20; ++round) {
        Sequence a(runtime), b(runtime);
        BlockCondition known, inserted;
        std::atomic<int> refused{0};
        Future<void> future;
        a.insert([&] {
            known.block();
            wait_or_count([&] { future.wait(); }, refused);
        });
        future = b.async([&] {
            inserted.block();
            wait_or_count([&] { a.wait(); }, refused);
        });
        known.signal();
        inserted.signal();
        a.wait();
        b.wait();
        EXPECT_EQ(refused, 1);
    }
}

/// What follows a task by data cannot be before it, near or far: on the engines that stand on heddle's graph.
class InnerWaitsAndData : public InnerWaits {};

TEST_P(InnerWaitsAndData, AWaitForWhatComesAfterTheTaskIsRefused) {
    Runtime runtime(options());
    for (int round = 0; round < 30; ++round) {
        Scalar<int> x(runtime), y(runtime);
        Sequence first(runtime), other(runtime);
        BlockCondition inserted;
        std::atomic<int> refused{0};
        Future<int> future;
        first.insert(
            [&](int& value) {
                inserted.block();
                wait_or_count([&] { round % 2 == 0 ? other.wait() : future.wait(); }, refused);
                value = 5;
            },
            inout(x));
        // Readers between writers, so that some are behind several.
        for (int i = 0; i < round % 4; ++i) other.insert([](const int&) {}, in(x));
        other.insert([](const int& from, int& to) { to = from + 1; }, in(x), out(y));
        future = other.async([](const int& value) { return value + 1; }, in(y));
        inserted.signal();
        EXPECT_EQ(future.get(), 7);
        first.wait();
        other.wait();
        EXPECT_EQ(refused, 1);
    }
}

/// One task waits for another, which waits for what comes after the first: whichever waits last is refused.
TEST_P(InnerWaitsAndData, ACircleThroughAnotherWaitAndDataIsFound) {
    Runtime runtime(options());
    for (int round = 0; round < 30; ++round) {
        Scalar<int> x(runtime);
        Sequence first(runtime), second(runtime), other(runtime);
        BlockCondition known, inserted;
        std::atomic<int> refused{0};
        Future<void> future;
        first.insert(
            [&](int&) {
                known.block();
                wait_or_count([&] { future.wait(); }, refused);
            },
            inout(x));
        future = second.async([&] {
            inserted.block();
            wait_or_count([&] { other.wait(); }, refused);
        });
        other.insert([](const int&) {}, in(x));
        (round % 2 == 0 ? known : inserted).signal();
        (round % 2 == 0 ? inserted : known).signal();
        first.wait();
        second.wait();
        other.wait();
        EXPECT_EQ(refused, 1);
    }
}

TEST_P(InnerWaitsAndData, AWaitForWhatComesBeforeTheTaskIsNone) {
    Runtime runtime(options());
    Scalar<int> x(runtime);
    for (int round = 0; round < 30; ++round) {
        Sequence before(runtime), first(runtime), after(runtime);
        BlockCondition inserted;
        for (int i = 0; i < 4; ++i) before.insert([](const int&) {}, in(x));
        Future<int> beside = before.async([] { return 3; });
        first.insert(
            [&](int& value) {
                inserted.block();
                before.wait();
                value = beside.get();
            },
            inout(x));
        after.insert([](int& value) { ++value; }, inout(x));
        inserted.signal();
        after.wait();
    }
    EXPECT_EQ(x.get(), 4);
}

/// The parent waits for data that its child writes. Where it is the parent's wait that is refused, the parent
/// goes on to the end of its child's sequence, and another wait is, too.
TEST_P(InnerWaitsAndData, AWaitForDataThatClosesACircleIsRefused) {
    Runtime runtime(options());
    for (int round = 0; round < 30; ++round) {
        Scalar<int> x(runtime);
        Sequence parents(runtime), others(runtime);
        std::atomic<int> refused{0};
        BlockCondition other_inserted;
        parents.insert([&] {
            Sequence children(runtime);
            children.insert(
                [&](int& value) {
                    other_inserted.block();
                    wait_or_count([&] { others.wait(); }, refused);
                    value = 3;
                },
                inout(x));
            wait_or_count([&] { x.wait(); }, refused);
        });
        others.insert([&] { wait_or_count([&] { parents.wait(); }, refused); });
        other_inserted.signal();
        parents.wait();
        others.wait();
        EXPECT_GE(refused, 1);
        EXPECT_LE(refused, 2);
        EXPECT_EQ(x.get(), 3);
    }
}

INSTANTIATE_TEST_SUITE_P(EnginesOnTheGraph, InnerWaitsAndData, testing::Values("native", "tbb"),
                         test::engine_name);

int fibonacci(Runtime& runtime, int n) {
    if (n < 2) return n;
    Sequence children(runtime);
    const auto one = children.async([&runtime, n] { return fibonacci(runtime, n - 1); });
    const auto two = children.async([&runtime, n] { return fibonacci(runtime, n - 2); });
    return one.get() + two.get();
}

TEST_P(InnerWaits, FuturesThatWaitForFuturesAreNoCircle) {
    Runtime runtime(options());
    Sequence sequence(runtime);
    std::vector<Future<int>> futures;
    for (int i = 0; i < 10; ++i)
        futures.push_back(sequence.async([&runtime] { return fibonacci(runtime, 8); }));
    // Of one sequence, each waits for all before it.
    std::vector<BlockCondition> known(10);
    for (int i = 0; i < 10; ++i)
        futures.push_back(sequence.async([&, i] {
            known[static_cast<size_t>(i)].block();
            int sum = 0;
            for (int k = 0; k < 10 + i; ++k) sum += futures[static_cast<size_t>(k)].get();
            return sum;
        }));
    for (BlockCondition& condition : known) condition.signal();
    EXPECT_EQ(futures.back().get(), 210 << 9);
    sequence.wait();
}

INSTANTIATE_TEST_SUITE_P(Engines, InnerWaits, test::engines(), test::engine_name);

/// With one worker tasks run to their next pause, in the order that the test says.
TEST(InnerWaitsOfOneWorker, WhereADestructorClosesTheCircleAnotherWaitIsRefused) {
    Runtime runtime({.engine = "native", .cpus = {}, .workers = 1});
    Sequence parents(runtime), others(runtime);
    std::atomic<int> refused{0};
    BlockCondition both_wait;
    bool child_ran = false;
    parents.insert([&] {
        {
            Sequence children(runtime);
            children.insert([&] {
                wait_or_count([&] { others.wait(); }, refused);
                child_ran = true;
            });
            others.insert([&] { wait_or_count([&] { parents.wait(); }, refused); });
            Sequence later(runtime);
            later.insert(TaskOptions{.priority = -1}, [&] { both_wait.signal(); });
            both_wait.block();
        }
        EXPECT_TRUE(child_ran);
    });
    parents.wait();
    others.wait();
    EXPECT_EQ(refused, 1);
}

TEST(InnerWaitsOfOneWorker, WhereADestructorClosesTheCircleTheWaitForAFutureIsRefused) {
    Runtime runtime({.engine = "native", .cpus = {}, .workers = 1});
    Sequence parents(runtime);
    std::atomic<int> refused{0};
    BlockCondition known, child_waits;
    Future<int> future;
    future = parents.async({.name = "parent"}, [&] {
        known.block();
        {
            Sequence children(runtime);
            children.insert({.name = "child"}, [&] { wait_or_count([&] { future.wait(); }, refused); });
            Sequence later(runtime);
            later.insert(TaskOptions{.priority = -1}, [&] { child_waits.signal(); });
            child_waits.block();
        }
        return 7;
    });
    known.signal();
    EXPECT_EQ(future.get(), 7);
    parents.wait();
    EXPECT_EQ(refused, 1);
}

TEST(InnerWaitsOfOneWorker, ARefusalSaysWhoWaitsForWhom) {
    Runtime runtime({.engine = "native", .cpus = {}, .workers = 1});
    Sequence sequence(runtime);
    std::string why;
    std::array<BlockCondition, 3> known;
    std::array<Future<void>, 3> futures;
    const std::array<const char*, 3> names{"first", "second", nullptr};
    for (size_t i = 0; i < 3; ++i)
        futures[i] = sequence.async({.name = names[i]}, [&, i] {
            known[i].block();
            try {
                futures[(i + 1) % 3].wait();
            } catch (const Error& error) {
                why += error.what();
            }
        });
    // One after the other begins to wait.
    for (const size_t i : {1, 2, 0}) {
        known[i].signal();
        BlockCondition waits;
        Sequence later(runtime);
        later.insert(TaskOptions{.priority = -1}, [&] { waits.signal(); });
        waits.block();
    }
    sequence.wait();
    EXPECT_THAT(why, HasSubstr("(task first waits for task second, which waits for a task without a name, "
                               "which waits for task first)"));
}

TEST(InnerWaitsOfOneWorker, ARefusalSaysThatDataOrderThem) {
    Runtime runtime({.engine = "native", .cpus = {}, .workers = 1});
    Scalar<int> x(runtime);
    Sequence writes(runtime), reads(runtime);
    BlockCondition inserted;
    writes.insert(
        {.name = "writer"},
        [&](int&) {
            inserted.block();
            reads.wait();
        },
        inout(x));
    reads.insert([](const int&) {}, in(x));
    inserted.signal();
    EXPECT_THAT([&] { writes.wait(); },
                testing::ThrowsMessage<Error>(
                    HasSubstr("(task writer waits for one that comes after it by the data that both name)")));
}

}  // namespace
}  // namespace heddle
