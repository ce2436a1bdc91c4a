// Tasks run as if one after the other, wherever they run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "heddle/task.hpp"
#include "support/engines.hpp"
#include "support/sanitized.hpp"

namespace heddle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class TaskTest : public test::ARuntimeOnEachEngine {};

INSTANTIATE_TEST_SUITE_P(Engines, TaskTest, test::engines(), test::engine_name);

TEST_P(TaskTest, WritersAndReadersOfADatumComeInOrder) {
    Scalar<int> x(runtime_, 1), y(runtime_);
    Sequence sequence(runtime_);
    sequence.insert([](int& v) { v = 20; }, out(x));
    sequence.insert([](const int& from, int& to) { to = from + 1; }, in(x), out(y));
    sequence.insert([](int& v, int factor) { v *= factor; }, inout(x), value(2));
    sequence.insert([](const int& from, int& to) { to += from; }, in(x), inout(y));
    sequence.wait();
    EXPECT_EQ(x.get(), 40);
    EXPECT_EQ(y.get(), 61);
}

TEST_P(TaskTest, AChainOfManyTasks) {
    Scalar<uint64_t> sum(runtime_, 0);
    Sequence sequence(runtime_);
    for (uint64_t i = 0; i < 100'000; ++i)
        sequence.insert([](uint64_t& v, uint64_t k) { v = v * 3 + k; }, inout(sum), value(i));
    sequence.wait();
    uint64_t expected = 0;
    for (uint64_t i = 0; i < 100'000; ++i) expected = expected * 3 + i;
    EXPECT_EQ(sum.get(), expected);
}

TEST_P(TaskTest, ManyIndependentTasks) {
    std::atomic<int> ran{0};
    Sequence sequence(runtime_);
    for (int i = 0; i < 200'000; ++i)
        sequence.insert([&ran] { ran.fetch_add(1, std::memory_order_relaxed); });
    sequence.wait();
    EXPECT_EQ(ran, 200'000);
}

/// So many bytes of functions, up to and beyond what is copied as bytes: alone, with data, and with options.
template <size_t... kWords>
size_t insert_functions(Sequence& sequence, std::atomic<size_t>& sum, Scalar<size_t>& x, Scalar<size_t>& y) {
    size_t expected = 0;
    const auto insert = [&]<size_t kCount>(std::integral_constant<size_t, kCount>) {
        std::array<size_t, kCount> own;
        std::iota(own.begin(), own.end(), kCount);
        const size_t all = std::accumulate(own.begin(), own.end(), size_t{0});
        expected += 4 * all + own.back();
        sequence.insert([own, &sum] { sum += std::accumulate(own.begin(), own.end(), size_t{0}); });
        sequence.insert([own](size_t& v) { v += std::accumulate(own.begin(), own.end(), size_t{0}); },
                        inout(x));
        sequence.insert(
            [](const size_t& from, size_t& to, const std::array<size_t, kCount>& given, size_t factor) {
                to = from + factor * (given.front() + given.back()) * kCount / 2;
            },
            in(x), out(y), value(own), value(size_t{2}));
        sequence.insert([](size_t& v, const size_t& from) { v = from; }, out(x), in(y));
        sequence.insert({.name = "named"}, [own, &sum] { sum += own.back(); });
    };
    (insert(std::integral_constant<size_t, kWords>()), ...);
    return expected;
}

TEST_P(TaskTest, FunctionsOfAnySizeComeWhole) {
    std::atomic<size_t> sum{0};
    Scalar<size_t> x(runtime_, 0), y(runtime_, 0);
    Sequence sequence(runtime_);
    const size_t expected = insert_functions<1, 3, 4, 5, 6, 7, 29, 30, 31, 32, 33, 40>(sequence, sum, x, y);
    sequence.wait();
    EXPECT_EQ(sum + x.get(), expected);
    EXPECT_EQ(y.get(), x.get());
}

/// What such a function writes would be lost, and does not compile: check_task() says why.
template <class Function, AccessMode kMode>
constexpr bool kIsRefused = detail::writes_a_copy<Function, detail::DataArgument<Scalar<int>, kMode>>();
static_assert(kIsRefused<void (*)(int), AccessMode::kOut> &&
              kIsRefused<void (*)(double), AccessMode::kInOut>);
static_assert(kIsRefused<decltype([](const int) mutable noexcept {}), AccessMode::kCommute>);
static_assert(!kIsRefused<void (*)(int&), AccessMode::kOut> && !kIsRefused<void (*)(int), AccessMode::kIn>);
static_assert(!kIsRefused<decltype([](auto) {}), AccessMode::kOut>, "of a template nobody can tell");

TEST_P(TaskTest, ScratchIsOneTasksAloneAndOneThatIsTooLargeIsItsFailure) {
    std::atomic<int> wrong{0};
    Sequence sequence(runtime_);
    for (int i = 0; i < 100; ++i)
        sequence.insert(
            [&wrong, i](std::span<int> elements) {
                std::ranges::fill(elements, i);
                std::this_thread::yield();
                wrong += elements.size() != 50 || std::ranges::count(elements, i) != 50;
            },
            scratch<int>(50));
    sequence.wait();
    EXPECT_EQ(wrong, 0);
    if (test::kSanitized) return;  // a sanitizer ends a process that wants so much
    for (const size_t size :
         {std::numeric_limits<size_t>::max() / 4, std::numeric_limits<size_t>::max() / 64}) {
        // Kept from being left out as memory that nobody looks at.
        std::atomic<double*> seen{nullptr};
        sequence.insert([&seen](std::span<double> elements) { seen = elements.data(); },
                        scratch<double>(size));
        EXPECT_THAT([&] { sequence.wait(); },
                    ThrowsMessage<Error>(HasSubstr("no memory for scratch of " + std::to_string(size))));
    }
}

TEST_P(TaskTest, TwoTasksRunAtOnce) {
    if (runtime_.cpus().count() < 2) GTEST_SKIP() << "this process may use one CPU only";
    std::atomic<int> met{0};
    std::atomic<bool> alone{false};
    Sequence sequence(runtime_);
    for (int i = 0; i < 2; ++i)
        sequence.insert([&] {
            ++met;
            const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
            while (met < 2 && !alone) {
                std::this_thread::yield();
                if (std::chrono::steady_clock::now() > deadline) alone = true;
            }
        });
    sequence.wait();
    EXPECT_FALSE(alone);
}

TEST_P(TaskTest, AWriterWaitsForAllReaders) {
    Vector<int> x(runtime_, 100);
    std::vector<int> seen(1000);
    Sequence sequence(runtime_);
    for (int round = 1; round <= 100; ++round) {
        sequence.insert([round](std::span<int> v) { std::fill(v.begin(), v.end(), round); }, out(x));
        for (int i = 0; i < 10; ++i) {
            int& place = seen[static_cast<size_t>((round - 1) * 10 + i)];
            sequence.insert(
                [&place](std::span<const int> v) { place = std::accumulate(v.begin(), v.end(), 0); }, in(x));
        }
    }
    sequence.wait();
    for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], (static_cast<int>(i) / 10 + 1) * 100);
}

TEST_P(TaskTest, AnErrorReachesItsWaitAndCancelsWhatReadsItsResult) {
    Scalar<int> a(runtime_, 1), b(runtime_, 1), c(runtime_, 1);
    bool dependent = false, independent = false, healed = false;
    Sequence sequence(runtime_);
    sequence.insert([](int&) { throw std::runtime_error("no pivot"); }, inout(a));
    sequence.insert([&](const int&, int&) { dependent = true; }, in(a), out(b));
    sequence.insert([&](const int&) { dependent = true; }, in(b));
    sequence.insert([&](int& v) { independent = true, v = 3; }, inout(c));
    sequence.insert([&](int& v) { healed = true, v = 2; }, out(b));
    EXPECT_THAT([&] { sequence.wait(); }, ThrowsMessage<std::runtime_error>(HasSubstr("no pivot")));
    EXPECT_FALSE(dependent);
    EXPECT_TRUE(independent);
    EXPECT_TRUE(healed);
    // Told once; what comes afterwards runs.
    sequence.insert([&](const int&) { dependent = true; }, in(a));
    sequence.wait();
    EXPECT_TRUE(dependent);
}

TEST_P(TaskTest, AnErrorReachesTheSequencesThatItConcerns) {
    Scalar<int> a(runtime_), b(runtime_);
    Sequence fails(runtime_), reads(runtime_), other(runtime_);
    fails.insert([](int&) { throw std::runtime_error("broken"); }, out(a));
    reads.insert([](const int&) {}, in(a));
    other.insert([](int& v) { v = 7; }, out(b));
    EXPECT_THAT([&] { reads.wait(); }, ThrowsMessage<std::runtime_error>(HasSubstr("broken")));
    EXPECT_NO_THROW(other.wait());
    EXPECT_THAT([&] { fails.wait(); }, ThrowsMessage<std::runtime_error>(HasSubstr("broken")));
    EXPECT_EQ(b.get(), 7);
}

TEST_P(TaskTest, ToWaitForDataDoesNotMakeThemGood) {
    Scalar<int> a(runtime_);
    std::atomic<bool> read{false};
    Sequence sequence(runtime_);
    sequence.insert([](int&) { throw std::runtime_error("torn"); }, out(a));
    a.wait();
    sequence.insert([&](const int&) { read = true; }, in(a));
    EXPECT_THAT([&] { sequence.wait(); }, ThrowsMessage<std::runtime_error>(HasSubstr("torn")));
    EXPECT_FALSE(read);
}

TEST_P(TaskTest, TasksInsertTasksAndWaitForThem) {
    Vector<long> parts(runtime_, 64);
    Scalar<long> total(runtime_);
    Sequence sequence(runtime_);
    sequence.insert(
        [this](std::span<long> own) {
            Sequence children(runtime_);
            for (size_t i = 0; i < own.size(); ++i)
                children.insert([&part = own[i], i] { part = static_cast<long>(i); });
            children.wait();
        },
        out(parts));
    sequence.insert(
        [](std::span<const long> all, long& sum) { sum = std::accumulate(all.begin(), all.end(), 0L); },
        in(parts), out(total));
    sequence.wait();
    EXPECT_EQ(total.get(), 64 * 63 / 2);
}

TEST_P(TaskTest, ATaskThatWaitsForItselfIsAnError) {
    Scalar<int> x(runtime_);
    Sequence sequence(runtime_);
    sequence.insert([&] { sequence.wait(); });
    EXPECT_THAT([&] { sequence.wait(); }, ThrowsMessage<Error>(HasSubstr("wait for itself")));
    sequence.insert([&](int&) { (void)x.get(); }, out(x));
    EXPECT_THAT([&] { sequence.wait(); }, ThrowsMessage<Error>(HasSubstr("uses itself")));
}

TEST_P(TaskTest, ATaskMayWaitForAnotherRuntimeButNotForItsOwn) {
    Runtime other(options());
    Sequence elsewhere(other), sequence(runtime_);
    std::atomic<bool> ended{false};
    elsewhere.insert([&] { ended = true; });
    sequence.insert([&] {
        other.wait();
        if (ended) runtime_.wait();
    });
    EXPECT_THAT([&] { sequence.wait(); }, ThrowsMessage<Error>(HasSubstr("wait for its runtime")));
}

TEST_P(TaskTest, DataOfAnotherRuntimeAreRefused) {
    Runtime other;
    Scalar<int> x(other);
    Sequence sequence(runtime_);
    EXPECT_THAT([&] { sequence.insert([](int&) {}, out(x)); },
                ThrowsMessage<Error>(HasSubstr("another runtime")));
    x.release();
    EXPECT_THAT([&] { sequence.insert([](int&) {}, out(x)); }, ThrowsMessage<Error>(HasSubstr("released")));
}

TEST_P(TaskTest, DataThatWereReleasedOrMovedAwayAreRefusedByEachUse) {
    Scalar<int> x(runtime_, 3), kept(runtime_, 0);
    Scalar<int> moved = std::move(x);
    Vector<int> v(runtime_, 8);
    v.release();
    Sequence sequence(runtime_);
    const auto refused = [](auto use) {
        EXPECT_THAT(use, ThrowsMessage<Error>(HasSubstr("released or moved")));
    };
    refused([&] { sequence.insert([](const int&) {}, in(x)); });
    refused([&] { sequence.insert([](int&, int&) {}, out(kept), inout(x)); });
    refused([&] { sequence.insert([](int&) {}, commute(x)); });
    refused([&] { sequence.insert([](int&) {}, redux(x)); });
    refused([&] { (void)sequence.async([](const int& value) { return value; }, in(x)); });
    refused([&] { sequence.insert({.near = Near::data(x)}, [] {}); });
    refused([&] { (void)x.get(); });
    refused([&] { (void)v.get(); });
    refused([&] { (void)v.size(); });
    refused([&] { v.release(); });
    // Nothing of it was inserted, and what is left goes on.
    sequence.insert([](int& value, const int& from) { value = from; }, out(kept), in(moved));
    sequence.wait();
    EXPECT_EQ(kept.get(), 3);
}

TEST_P(TaskTest, ManyThreadsInsertAtOnce) {
    Scalar<long> sum(runtime_, 0);
    Sequence shared(runtime_);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            Sequence own(runtime_);
            for (int i = 0; i < 5'000; ++i) {
                shared.insert([](long& v) { ++v; }, inout(sum));
                own.insert([](long& v) { ++v; }, inout(sum));
            }
            own.wait();
        });
    threads.clear();
    shared.wait();
    EXPECT_EQ(sum.get(), 40'000);
}

TEST_P(TaskTest, PrioritiesDecideWhoIsFirstOfThoseThatCouldRun) {
    Runtime runtime(options(1));
    std::vector<int> order;
    Scalar<int> gate(runtime);
    std::atomic<bool> open{false};
    Sequence sequence(runtime);
    sequence.insert([&](int&) { open.wait(false); }, out(gate));
    for (const int priority : {-1, 3, 0, 7, 5})
        sequence.insert(
            {.priority = priority}, [&, priority](const int&) { order.push_back(priority); }, in(gate));
    open = true;
    open.notify_all();
    sequence.wait();
    EXPECT_THAT(order, testing::ElementsAre(7, 5, 3, 0, -1));
}

TEST_P(TaskTest, NoneOfManyPrioritiesLosesItsPlace) {
    if (engine_.name == "quark" || engine_.name == "parsec")
        GTEST_SKIP() << "skipped: a priority counts among the tasks that are handed over together";
    Runtime runtime(options(1));
    // More than a native worker runs before it looks whether it is of use.
    constexpr int kTasks = 150;
    std::vector<int> order, highest_first;
    Scalar<int> gate(runtime);
    std::atomic<bool> open{false};
    Sequence sequence(runtime);
    sequence.insert([&](int&) { open.wait(false); }, out(gate));
    for (int i = 0; i < kTasks; ++i) {
        const TaskOptions options{.priority = i + 1};
        sequence.insert(
            options, [&order, i](const int&) { order.push_back(i); }, in(gate));
        highest_first.push_back(kTasks - 1 - i);
    }
    open = true;
    open.notify_all();
    sequence.wait();
    EXPECT_EQ(order, highest_first);
}

TEST(RuntimeTest, BadOptionsAreRefused) {
    RuntimeOptions options;
    options.engine = "warp";
    EXPECT_THAT([&] { Runtime runtime(options); }, ThrowsMessage<Error>(HasSubstr("native, openmp")));
    options.engine = "Native";
    options.workers = -1;
    EXPECT_THAT([&] { Runtime runtime(options); }, ThrowsMessage<Error>(HasSubstr("-1 workers")));
    options.workers = 0;
    options.cpus = CpuSet{4095};
    EXPECT_THAT([&] { Runtime runtime(options); }, ThrowsMessage<Error>(HasSubstr("may not use CPUs 4095")));
}

TEST(RuntimeTest, SwitchesItsEngineWhileOthersInsert) {
    Runtime runtime;
    Scalar<long> sum(runtime, 0);
    std::atomic<bool> stop{false};
    std::atomic<long> inserted{0};
    std::jthread inserter([&] {
        Sequence sequence(runtime);
        while (!stop) {
            for (int i = 0; i < 100; ++i, ++inserted) sequence.insert([](long& v) { ++v; }, inout(sum));
            sequence.wait();
        }
    });
    for (int i = 0; i < 50; ++i) runtime.switch_engine("native");
    stop = true;
    inserter.join();
    EXPECT_EQ(sum.get(), inserted);
}

/// A child may live longer than the task that made it; its data do not go before, nor are they looked at.
TEST_P(TaskTest, DataAreThereForChildrenThatWereLeftBehind) {
    for (const bool is_waited_for : {true, false}) {
        BlockCondition goes_on;
        std::atomic<bool> is_done{false};
        std::thread signals([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(30));
            goes_on.signal();
        });
        Sequence parents(runtime_);
        {
            Scalar<int> x(runtime_, 1);
            parents.insert([&] {
                const auto children = std::make_shared<Sequence>(runtime_);
                children->insert(
                    [&, children](int& value) {
                        goes_on.block();
                        value = 2;
                        is_done = true;
                    },
                    inout(x));
            });
            parents.wait();
            if (is_waited_for) {
                EXPECT_EQ(x.get(), 2);
            }
        }
        EXPECT_TRUE(is_done) << "its data are gone";
        signals.join();
        runtime_.wait();
    }
}

/// A service that comes while a switch waits for tasks is heard of: they may wait for what it tells.
TEST_P(TaskTest, AServiceMayComeWhileASwitchWaits) {
    Sequence sequence(runtime_);
    BlockCondition told;
    std::atomic<bool> runs{false};
    sequence.insert([&] {
        runs = true;
        told.block();
    });
    while (!runs) std::this_thread::yield();
    std::thread switches([&] { runtime_.switch_engine(GetParam()); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it waits by then, most likely
    register_polling_service(
        runtime_, "tells",
        [](void* condition) {
            static_cast<BlockCondition*>(condition)->signal();
            return true;
        },
        &told);
    switches.join();
    sequence.wait();
}

struct alignas(kDataAlignment) Line {
    double values[8];
};

TEST_P(TaskTest, ElementsAreAligned) {
    const auto is_aligned = [](const Line* line) {
        return reinterpret_cast<uintptr_t>(line) % kDataAlignment == 0;
    };
    int aligned = 0;
    Vector<Line> many(runtime_, 1 << 14), few(runtime_, 3);
    Scalar<Line> one(runtime_, Line{{1, 2}});
    Sequence sequence(runtime_);
    sequence.insert([&](std::span<Line> a, std::span<const Line> b,
                        Line& c) { aligned += is_aligned(a.data()) + is_aligned(b.data()) + is_aligned(&c); },
                    inout(many), in(few), inout(one));
    sequence.wait();
    EXPECT_EQ(aligned, 3);
    EXPECT_EQ(one.get().values[1], 2);
}

}  // namespace
}  // namespace heddle
