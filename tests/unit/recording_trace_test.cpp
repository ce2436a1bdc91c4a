// The trace has the tasks of a recording, and nothing of what orders them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "heddle/recording.hpp"
#include "heddle/task.hpp"
#include "support/traced.hpp"
#include "trace/summary.hpp"

namespace heddle::test {
namespace {

using testing::Pair;

/// Between the tasks that add and the one that reads is a join, in the record of a task that had a name.
int replay_traced() {
    Runtime runtime({.engine = "native", .cpus = {}, .workers = 1});
    Sequence sequence(runtime);
    sequence.insert({.name = "before"}, [] {});
    sequence.wait();
    Scalar<int> sum(runtime, 0);
    Recording recording(runtime);
    for (int i = 0; i < 2; ++i)
        recording.insert(
            {.name = "adds"}, [](int& all) { ++all; }, commute(sum));
    recording.insert(
        {.name = "reads"}, [](const int&) {}, in(sum));
    recording.replay(sequence);
    sequence.wait();
    return sum.get() == 2 ? 0 : 1;
}

TEST(RecordingTraceDeathTest, HasItsTasksAndNoJoins) {
    std::map<std::string, int64_t> ended;
    for (const trace::WorkAccount& one : work_summary(trace_of(replay_traced))) ended[one.name] = one.ended;
    EXPECT_THAT(
        ended, testing::ElementsAre(Pair("adds", 2), Pair("before", 1), Pair("reads", 1), Pair("replay", 1)));
}

}  // namespace
}  // namespace heddle::test
