// Tasks with CPUs of their own run there and nowhere else, whatever thread they get; bad sets are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <mutex>

#include "heddle/error.hpp"
#include "heddle/machine.hpp"
#include "heddle/pause.hpp"
#include "support/engines.hpp"
#include "tasks/task_place.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class TaskPlaceTest : public test::ARuntimeOnEachEngine {
  protected:
    const CpuSet all_ = runtime_.cpus();
    /// Counts itself in where it is not on `cpus` alone.
    auto strays(const CpuSet& cpus) {
        return [this, &cpus] {
            if (!cpus.contains(thread_affinity()) || !cpus.contains(sched_getcpu())) ++strayed_;
        };
    }
    std::atomic<int> strayed_{0};
};
INSTANTIATE_TEST_SUITE_P(Engines, TaskPlaceTest, test::engines(), test::engine_name);

TEST_P(TaskPlaceTest, ATaskRunsOnItsCpusAlone) {
    const CpuSet before = thread_affinity();
    Sequence sequence(runtime_);
    std::vector<CpuSet> each;
    for (const int cpu : all_) each.push_back(CpuSet{cpu});
    for (int i = 0; i < 300; ++i) {
        const CpuSet& cpus = each[static_cast<size_t>(i) % each.size()];
        sequence.insert({.priority = i % 7 == 0 ? 1 : 0, .cpus = cpus}, strays(cpus));
        sequence.insert([] {});
        sequence.insert({.cpus = all_}, strays(all_));
    }
    sequence.wait();
    EXPECT_EQ(strayed_, 0);
    EXPECT_EQ(thread_affinity().to_list(), before.to_list());
}

TEST_P(TaskPlaceTest, AlsoAfterAPauseAndForWhatItRunsMeanwhile) {
    const CpuSet first{all_.first()}, last{all_.last()};
    std::vector<BlockCondition> conditions(8);
    Sequence sequence(runtime_);
    for (size_t i = 0; i < conditions.size(); ++i) {
        const CpuSet& cpus = i % 2 == 0 ? first : last;
        sequence.insert({.cpus = cpus}, [this, &condition = conditions[i], &cpus] {
            strays(cpus)();
            condition.block();
            strays(cpus)();
            Sequence children(runtime_);
            children.insert({.cpus = cpus}, strays(cpus));
            children.wait();
            strays(cpus)();
        });
    }
    sequence.insert([&] {
        for (BlockCondition& condition : conditions) condition.signal();
    });
    sequence.wait();
    EXPECT_EQ(strayed_, 0);
}

TEST_P(TaskPlaceTest, NearIsAWishThatMayBeForAnything) {
    Vector<double> x(runtime_, 1'000);
    std::atomic<int> ran{0};
    const auto count = [&](std::span<double>) { ++ran; };
    Sequence sequence(runtime_);
    for (int i = 0; i < 50; ++i) {
        sequence.insert({.near = Near::cpu(all_.last())}, count, inout(x));
        sequence.insert({.near = Near::numa_node(0)}, count, inout(x));
        sequence.insert({.near = Near::data(x)}, count, inout(x));
        sequence.insert({.cpus = CpuSet{all_.first()}, .near = Near::cpu(all_.last())}, count, inout(x));
    }
    sequence.wait();
    EXPECT_EQ(ran, 200);
}

TEST_P(TaskPlaceTest, SetsThatCannotBeAreRefused) {
    std::atomic<int> ran{0};
    Sequence sequence(runtime_);
    const auto insert = [&](TaskOptions with) { sequence.insert(with, [&] { ++ran; }); };
    EXPECT_THAT([&] { insert({.cpus = CpuSet()}); }, ThrowsMessage<Error>(HasSubstr("set of CPUs is empty")));
    EXPECT_THAT([&] { insert({.cpus = CpuSet{4'095}}); },
                ThrowsMessage<Error>(HasSubstr("cannot run on CPUs 4095")));
    EXPECT_THAT([&] { insert({.near = Near::cpu(4'095)}); },
                ThrowsMessage<Error>(HasSubstr("near CPU 4095")));
    EXPECT_THAT([&] { insert({.near = Near::numa_node(77)}); },
                ThrowsMessage<Error>(HasSubstr("NUMA node 77")));
    insert({.cpus = all_});
    sequence.wait();
    EXPECT_EQ(ran, 1);
}

TEST(PlacementsTest, NearIsWhatTheRuntimeHasNearest) {
    const Machine machine = Machine::synthetic("numa:2 core:2 pu:2");  // 0-3 and 4-7
    Placements placements;
    const CpuSet some = CpuSet::parse("0,1,2,4,6,7");
    const auto cpus = [&](const TaskOptions& options) {
        const Placement* found = placements.find(options, machine, some);
        return found == nullptr ? "" : found->cpus.to_list();
    };
    EXPECT_EQ(cpus({.near = Near::cpu(2)}), "2");
    EXPECT_EQ(cpus({.near = Near::cpu(3)}), "2");
    EXPECT_EQ(cpus({.near = Near::cpu(5)}), "4");
    EXPECT_EQ(cpus({.near = Near::numa_node(1)}), "4,6-7");
    EXPECT_EQ(cpus({.cpus = CpuSet{0, 4}, .near = Near::numa_node(1)}), "4");
    EXPECT_EQ(cpus({.cpus = CpuSet{0, 1}, .near = Near::numa_node(1)}), "0-1");
    EXPECT_EQ(cpus({.cpus = some}), "");
    EXPECT_EQ(placements.find({.cpus = CpuSet{4}}, machine, some),
              placements.find({.cpus = CpuSet{4}}, machine, some));
}

}  // namespace
}  // namespace heddle
