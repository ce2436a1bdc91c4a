// What every engine does alike, beyond what task_test.cpp asks of single tasks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <chrono>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "heddle/cores.hpp"
#include "heddle/error.hpp"
#include "heddle/machine.hpp"
#include "heddle/pause.hpp"
#include "support/engines.hpp"
#include "support/left_behind.hpp"
#include "support/sanitized.hpp"
#include "support/seeds.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

class EngineTest : public test::OnEachEngine {};
INSTANTIATE_TEST_SUITE_P(Engines, EngineTest, test::engines(), test::engine_name);

/// A program of tasks over a few data, drawn from a seed; and what it leaves behind.
class RandomProgram {
  public:
    static constexpr size_t kData = 10, kTasks = 80;
    using Values = std::array<uint64_t, kData>;

    explicit RandomProgram(uint64_t seed) : random_(seed) {
        for (Step& step : steps_) {
            step.number = random_();
            for (size_t i = 0; i < step.data.size(); ++i) {
                const auto before = std::span(step.data).first(i);
                do step.data[i] = random_() % kData;
                while (std::ranges::find(before, step.data[i]) != before.end());
            }
            step.shape = random_() % 7;
            step.priority = random_() % 8 == 0 ? static_cast<int>(random_() % 5) - 2 : 0;
        }
    }

    [[nodiscard]] Values one_after_the_other() const {
        Values values{};
        for (const Step& step : steps_) {
            const auto [a, b, c] = step.data;
            if (step.shape == 0) mix(step.number, values[a], values[b], values[c]);
            if (step.shape == 1) values[a] = step.number;
            if (step.shape == 2) grow(step.number, values[a]);
            if (step.shape == 3) mix(step.number, values[b], values[b], values[c]);
            if (step.shape == 4) values[a] += step.number;
            if (step.shape == 5) values[a] += step.number;
            if (step.shape == 6) values[b] += values[a] ^ step.number, values[c] += step.number;
        }
        return values;
    }

    [[nodiscard]] Values as_tasks(Runtime& runtime) const {
        std::vector<Scalar<uint64_t>> data;
        for (size_t i = 0; i < kData; ++i) data.emplace_back(runtime);
        Sequence sequences[2]{Sequence(runtime), Sequence(runtime)};
        for (const Step& step : steps_) {
            Sequence& sequence = sequences[step.number % 2];
            const TaskOptions options{.priority = step.priority};
            auto& [a, b, c] = step.data;
            if (step.shape == 0)
                sequence.insert(
                    options,
                    [](uint64_t n, const uint64_t& x, const uint64_t& y, uint64_t& z) { mix(n, x, y, z); },
                    value(step.number), in(data[a]), in(data[b]), inout(data[c]));
            if (step.shape == 1)
                sequence.insert(
                    options, [](uint64_t n, uint64_t& x) { x = n; }, value(step.number), out(data[a]));
            if (step.shape == 2) sequence.insert(options, grow, value(step.number), inout(data[a]));
            if (step.shape == 3)
                sequence.insert(
                    options, [](uint64_t n, const uint64_t& x, uint64_t& z) { mix(n, x, x, z); },
                    value(step.number), in(data[b]), inout(data[c]));
            const auto add = [](uint64_t n, uint64_t& x) { x += n; };
            if (step.shape == 4) sequence.insert(options, add, value(step.number), commute(data[a]));
            if (step.shape == 5) sequence.insert(options, add, value(step.number), redux(data[a]));
            if (step.shape == 6)
                sequence.insert(
                    options,
                    [](uint64_t n, const uint64_t& x, uint64_t& y, uint64_t& z) { y += x ^ n, z += n; },
                    value(step.number), in(data[a]), commute(data[b]), redux(data[c]));
        }
        Values values{};
        for (size_t i = 0; i < kData; ++i) values[i] = data[i].get();
        for (Sequence& sequence : sequences) sequence.wait();
        return values;
    }

  private:
    struct Step {
        uint64_t number, shape;
        std::array<size_t, 3> data;
        int priority;
    };
    static void mix(uint64_t n, const uint64_t& x, const uint64_t& y, uint64_t& z) {
        z = (z + n) * 0x9e3779b97f4a7c15 + x * 31 + y;
    }
    static void grow(uint64_t n, uint64_t& x) { x = x * 6364136223846793005 + n; }

    std::mt19937_64 random_;
    std::array<Step, kTasks> steps_{};
};

TEST_P(EngineTest, RandomProgramsGiveTheSequentialResult) {
    Runtime runtime(options());
    const auto [first, count] = test::seeds(test::kSanitized ? 50 : 1'000);
    for (uint64_t seed = first; seed < first + count; ++seed) {
        const RandomProgram program(seed);
        ASSERT_EQ(program.as_tasks(runtime), program.one_after_the_other()) << "seed " << seed;
    }
}

TEST_P(EngineTest, TasksHaveTheStackThatWasAskedFor) {
    RuntimeOptions with = options();
    with.stack_bytes = size_t{1} << 20;
    Runtime runtime(with);
    Sequence sequence(runtime);
    std::atomic<int> sum{0};
    for (int i = 0; i < 20; ++i)
        sequence.insert([&sum, i] {
            volatile char large[700 << 10];
            for (size_t at = 0; at < sizeof large; at += 1 << 10) large[at] = static_cast<char>(i);
            sum += large[300 << 10];
        });
    sequence.wait();
    EXPECT_EQ(sum, 190);
}

TEST(EnginesTest, StacksThatCannotBeAreRefused) {
    for (const size_t bytes : {size_t{1}, size_t{100'000}, size_t{8} << 10, size_t{1} << 40}) {
        RuntimeOptions options;
        options.stack_bytes = bytes;
        EXPECT_THAT([&] { Runtime runtime(options); },
                    testing::ThrowsMessage<Error>(testing::HasSubstr("a stack cannot have")));
    }
}

TEST_P(EngineTest, TasksRunOnTheCpusOfTheRuntimeAlone) {
    RuntimeOptions with = options();
    with.cpus = CpuSet{allowance(Machine::detect()).usable.last()};
    Runtime runtime(with);
    std::mutex mutex;
    CpuSet seen, allowed;
    Sequence sequence(runtime);
    for (int i = 0; i < 500; ++i)
        sequence.insert([&] {
            const CpuSet may = thread_affinity();
            const std::lock_guard guard(mutex);
            seen.insert(sched_getcpu());
            allowed |= may;
        });
    sequence.wait();
    EXPECT_EQ(seen.to_list(), with.cpus.to_list());
    EXPECT_EQ(allowed.to_list(), with.cpus.to_list());
}

/// A worker is bound, but not what is made in it.
TEST_P(EngineTest, WhatIsMadeInATaskMayUseAllCpus) {
    const std::string all = allowance(Machine::detect()).usable.to_list();
    RuntimeOptions one = options();
    one.cpus = CpuSet{allowance(Machine::detect()).usable.last()};
    Runtime runtime(one);
    std::string seen, inside, deeper;
    Sequence sequence(runtime);
    sequence.insert([&] {
        seen = allowance(Machine::detect()).usable.to_list();
        Runtime inner;
        inside = inner.cpus().to_list();
        Sequence steps(inner);
        steps.insert([&] { deeper = allowance(Machine::detect()).affinity.to_list(); });
        steps.wait();
    });
    sequence.wait();
    EXPECT_EQ(seen, all);
    EXPECT_EQ(inside, all);
    EXPECT_EQ(deeper, thread_affinity().to_list());
    // Outside of tasks it is what the caller may use now.
    const CpuSet before = thread_affinity();
    ASSERT_TRUE(set_thread_affinity(one.cpus));
    EXPECT_EQ(allowance(Machine::detect()).usable.to_list(), one.cpus.to_list());
    ASSERT_TRUE(set_thread_affinity(before));
}

TEST_P(EngineTest, WithoutTasksItLeavesItsCpusToOthers) {
    Runtime runtime(options());
    const int all = runtime.cpus().count();
    for (int round = 0; round < 3; ++round) {
        std::atomic<int> ran{0};
        Sequence sequence(runtime);
        for (int i = 0; i < 100; ++i) sequence.insert([&] { ++ran; });
        sequence.wait();
        EXPECT_EQ(ran, 100);
        // Another part of the program wants every CPU, and has them sooner or later.
        Component other("other", CpuSet());
        (void)other.acquire_cpus(all);
        const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (other.usable().count() < all && std::chrono::steady_clock::now() < patience)
            std::this_thread::yield();
        EXPECT_EQ(other.usable().count(), all);
    }
}

TEST_P(EngineTest, NoMoreTasksAtOnceThanWorkers) {
    for (const int workers : {1, 2}) {
        Runtime runtime(options(workers));
        std::atomic<int> now{0}, most{0};
        Sequence sequence(runtime);
        for (int i = 0; i < 5'000; ++i)
            sequence.insert([&] {
                const int here = ++now;
                for (int before = most; before < here && !most.compare_exchange_weak(before, here);) {
                }
                --now;
            });
        sequence.wait();
        EXPECT_LE(most, workers);
    }
}

TEST_P(EngineTest, WaitsInTasksNeedNoFurtherWorker) {
    Runtime runtime(options(1));
    std::atomic<int> ran{0};
    Scalar<int> x(runtime, 0);
    Sequence outer(runtime), others(runtime);
    others.insert([](int& v) { v = 5; }, out(x));
    outer.insert([&] {
        others.insert([&](const int& v) { ran += v; }, in(x));
        others.wait();
        Sequence children(runtime);
        for (int i = 0; i < 10; ++i)
            children.insert([&] {
                Sequence grandchildren(runtime);
                for (int k = 0; k < 10; ++k) grandchildren.insert([&] { ++ran; });
                grandchildren.wait();
            });
        children.wait();
        ran += x.get();
    });
    outer.wait();
    EXPECT_EQ(ran, 5 + 100 + 5);
}

TEST_P(EngineTest, ATaskBlocksUntilAnotherOneSignals) {
    Runtime runtime(options(1));
    std::vector<BlockCondition> conditions(8);
    std::atomic<int> went_on{0};
    Sequence sequence(runtime);
    for (BlockCondition& condition : conditions)
        sequence.insert([&] {
            condition.block();
            ++went_on;
        });
    sequence.insert([&] {
        for (BlockCondition& condition : conditions) condition.signal();
    });
    sequence.wait();
    EXPECT_EQ(went_on, 8);
}

TEST_P(EngineTest, AConditionIsSignalledByAPollingService) {
    Runtime runtime(options(1));
    struct Timer {
        BlockCondition condition;
        int calls = 0;
    } timer;
    const PollingService service = [](void* data) {
        auto& it = *static_cast<Timer*>(data);
        if (++it.calls < 5) return false;
        it.condition.signal();
        return true;
    };
    register_polling_service(runtime, "timer", service, &timer);
    Sequence sequence(runtime);
    sequence.insert([&] { timer.condition.block(); });
    sequence.wait();
    EXPECT_EQ(timer.calls, 5);
}

TEST_P(EngineTest, ManyMoreTasksThanItHoldsAtOnce) {
    Runtime runtime(options());
    BlockCondition open;
    std::atomic<long> ran{0};
    Scalar<int> gate(runtime, 0);
    Sequence sequence(runtime), free(runtime);
    sequence.insert([&](int&) { open.block(); }, out(gate));
    for (int i = 0; i < 20'000; ++i) sequence.insert([&](const int&) { ++ran; }, in(gate));
    // All that came before waits for the gate, and the gate for what comes now.
    free.insert([&] { open.signal(); });
    sequence.wait();
    free.wait();
    EXPECT_EQ(ran, 20'000);
}

template <size_t... I>
void insert_over(Sequence& sequence, std::vector<Scalar<int>>& data, std::index_sequence<I...>) {
    sequence.insert([](decltype((void)I, std::declval<int&>())... each) { (++each, ...); },
                    inout(data[I])...);
}

TEST_P(EngineTest, ATaskMayNameMoreDataThanItsTablesHold) {
    Runtime runtime(options());
    std::vector<Scalar<int>> data;
    constexpr size_t kData = 70;
    for (size_t i = 0; i < kData; ++i) data.emplace_back(runtime, 0);
    Sequence sequence(runtime);
    for (int round = 0; round < 20; ++round) {
        insert_over(sequence, data, std::make_index_sequence<kData>());
        sequence.insert([](const int& a, int& b) { b += a; }, in(data[0]), inout(data[kData - 1]));
    }
    sequence.wait();
    EXPECT_EQ(data[1].get(), 20);
    EXPECT_EQ(data[kData - 1].get(), 20 + 210);
}

TEST_P(EngineTest, DataComeAndGo) {
    Runtime runtime(options());
    std::atomic<int> wrong{0};
    Sequence sequence(runtime);
    for (int i = 0; i < 2'000; ++i) {
        Scalar<int> x(runtime, i);
        sequence.insert([](int& v) { ++v; }, inout(x));
        if (x.get() != i + 1) ++wrong;
    }
    for (int i = 0; i < 100; ++i)
        sequence.insert([&] {
            Scalar<int> x(runtime, 1);
            Sequence children(runtime);
            children.insert([](int& v) { ++v; }, inout(x));
            if (x.get() != 2) ++wrong;
            x.release();
        });
    sequence.wait();
    EXPECT_EQ(wrong, 0);
}

TEST_P(EngineTest, StartsAndStopsAThousandTimesWithoutATrace) {
    const auto once = [&] {
        Runtime runtime(options());
        Scalar<int> x(runtime, 1);
        Sequence sequence(runtime);
        for (int i = 0; i < 4; ++i) sequence.insert([](int& v) { v *= 2; }, inout(x));
        sequence.wait();
        ASSERT_EQ(x.get(), 16);
    };
    test::expect_nothing_left_behind(once, test::kSanitized ? 50 : 1'000);
}

TEST(EnginesTest, AreSwitchedWhileOthersInsert) {
    Runtime runtime;
    std::vector<std::string> names;
    for (const EngineInfo& engine : Runtime::engines())
        if (engine.available) names.push_back(engine.name);
    Scalar<long> sum(runtime, 0);
    std::atomic<bool> stop{false};
    std::atomic<long> inserted{0};
    std::vector<std::jthread> inserters;
    for (int t = 0; t < 2; ++t)
        inserters.emplace_back([&] {
            Sequence sequence(runtime);
            while (!stop) {
                for (int i = 0; i < 50; ++i, ++inserted) sequence.insert([](long& v) { ++v; }, inout(sum));
                sequence.wait();
            }
        });
    for (size_t i = 0; i < 120; ++i) {
        runtime.switch_engine(names[i % names.size()]);
        ASSERT_EQ(runtime.engine(), names[i % names.size()]);
    }
    stop = true;
    inserters.clear();
    EXPECT_EQ(sum.get(), inserted);
}

TEST(EnginesTest, AreSwitchedAThousandTimesWithoutATrace) {
    Runtime runtime;
    std::vector<std::string> names;
    for (const EngineInfo& engine : Runtime::engines()) {
        // With each switch to it some 300 bytes are lost: docs/ENGINES.md.
        if (engine.available && engine.name != "openmp-libomp") names.push_back(engine.name);
    }
    Scalar<long> kept(runtime, 0);
    Sequence sequence(runtime);
    long switches = 0;
    const auto once = [&] {
        runtime.switch_engine(names[static_cast<size_t>(switches) % names.size()]);
        for (int i = 0; i < 4; ++i) sequence.insert([](long& v) { ++v; }, inout(kept));
        sequence.wait();
        ASSERT_EQ(kept.get(), 4 * ++switches);
    };
    test::expect_nothing_left_behind(once, test::kSanitized ? 50 : 1'000);
}

TEST(EnginesTest, AllOfThemAtOnceInOneProcess) {
    std::vector<std::jthread> threads;
    for (const EngineInfo& engine : Runtime::engines()) {
        if (!engine.available) continue;
        threads.emplace_back([name = engine.name] {
            Runtime runtime({.engine = name, .cpus = {}, .workers = 0});
            for (uint64_t seed = 0; seed < 20; ++seed) {
                const RandomProgram program(seed);
                EXPECT_EQ(program.as_tasks(runtime), program.one_after_the_other()) << name << " " << seed;
            }
        });
    }
}

}  // namespace
}  // namespace heddle
