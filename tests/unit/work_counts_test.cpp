// What a runtime says it has done (Component::on_count), as `heddle top` asks for it.
#include <gtest/gtest.h>

#include "cores/exchange.hpp"
#include "heddle/recording.hpp"
#include "support/engines.hpp"
#include "support/wait_until.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;

/// Of all components of this process that have the name.
WorkCounts work_of(std::string_view wanted) {
    WorkCounts sum;
    Exchange::process().work().ask([&](uint32_t, const std::string& name, const WorkCounts& counts) {
        if (name != wanted) return;
        sum.inserted += counts.inserted;
        sum.ended += counts.ended;
    });
    return sum;
}

class WorkCountsTest : public test::ARuntimeOnEachEngine {};
INSTANTIATE_TEST_SUITE_P(Engines, WorkCountsTest, test::engines(), test::engine_name);

TEST_P(WorkCountsTest, TasksAndTheirChildrenAreCountedOnce) {
    EXPECT_EQ(work_of(GetParam()), WorkCounts());
    Sequence sequence(runtime_);
    Scalar<int> sum(runtime_, 0);
    for (int i = 0; i < 300; ++i) sequence.insert([](int& value) { ++value; }, inout(sum));
    sequence.insert([&] {
        Sequence children(runtime_);
        for (int i = 0; i < 100; ++i) children.insert([] {});
        children.wait();
    });
    sequence.wait();
    EXPECT_EQ(work_of(GetParam()), (WorkCounts{401, 401}));
}

TEST_P(WorkCountsTest, WhatWaitsIsInsertedAndHasNotEnded) {
    Sequence sequence(runtime_);
    Scalar<int> sum(runtime_, 0);
    std::atomic<bool> go = false, inside = false;
    sequence.insert(
        [&](int&) {
            inside = true;
            inside.notify_all();
            go.wait(false);
        },
        inout(sum));
    for (int i = 0; i < 9; ++i) sequence.insert([](int&) {}, inout(sum));
    inside.wait(false);
    EXPECT_EQ(work_of(GetParam()), (WorkCounts{10, 0}));
    go = true;
    go.notify_all();
    sequence.wait();
    EXPECT_EQ(work_of(GetParam()), (WorkCounts{10, 10}));
}

TEST_P(WorkCountsTest, ANewEngineCountsItsOwnTasks) {
    Sequence sequence(runtime_);
    for (int i = 0; i < 10; ++i) sequence.insert([] {});
    sequence.wait();
    runtime_.switch_engine("native");
    for (int i = 0; i < 3; ++i) sequence.insert([] {});
    sequence.wait();
    EXPECT_EQ(work_of("native"), (WorkCounts{3, 3}));
}

TEST_P(WorkCountsTest, ReplaysCount) {
    Scalar<int> sum(runtime_, 0);
    Recording recording(runtime_);
    for (int i = 0; i < 7; ++i) recording.insert([](int& value) { ++value; }, inout(sum));
    const WorkCounts before = work_of(GetParam());
    Sequence sequence(runtime_);
    for (int i = 0; i < 5; ++i) recording.replay(sequence);
    sequence.wait();
    const WorkCounts after = work_of(GetParam());
    EXPECT_EQ(after.inserted - before.inserted, 5U * (7 + 1)) << "and a task that starts each";
    EXPECT_EQ(after.ended, after.inserted);
}

}  // namespace
}  // namespace heddle
