// HEDDLE_TRACE: which task ran where and when, on each engine, also of a program that is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "bench/process.hpp"
#include "heddle/error.hpp"
#include "support/engines.hpp"
#include "support/temporary_folder.hpp"
#include "trace/reader.hpp"
#include "trace/summary.hpp"
#include "trace/timeline.hpp"

namespace heddle::test {
namespace {

using bench::Outcome;
using testing::HasSubstr;

class TaskTraceTest : public test::OnEachEngine {
  protected:
    /// Of the program with these words, traced to the file of that name in the folder.
    [[nodiscard]] Outcome traced(const std::vector<std::string>& words, const std::string& name) const {
        bench::Command command{{HEDDLE_BUILD_DIR "/tests/programs/traced"},
                               {"HEDDLE_ARBITER=off", "HEDDLE_TRACE=" + folder_.path() + "/" + name},
                               {}};
        command.argv.insert(command.argv.end(), words.begin(), words.end());
        return bench::run_together({&command, 1}, std::chrono::seconds(60)).front();
    }
    [[nodiscard]] std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

    test::TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Engines, TaskTraceTest, test::engines(), test::engine_name);

TEST_P(TaskTraceTest, EachTaskIsThereWithItsWorkerAndCpu) {
    const Outcome outcome = traced({engine_.name}, "trace.jsonl");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, "right\n");
    const trace::Timeline timeline(trace::read_file(path("trace.jsonl")));
    ASSERT_EQ(timeline.clients.size(), 1U);
    EXPECT_EQ(timeline.clients[0].name, "traced");
    EXPECT_EQ(timeline.dropped, 0);
    std::map<std::string, int64_t> ended, pauses;
    for (const trace::WorkAccount& one : work_summary(timeline)) {
        ended[one.name] = one.ended;
        pauses[one.name] = one.pauses;
    }
    using testing::Pair;
    EXPECT_THAT(ended, testing::ElementsAre(Pair("fails", 1), Pair("fill", 3), Pair("signals", 1),
                                            Pair("sum", 1), Pair("task", 1), Pair("waits", 1)))
        << "and nothing of the cancelled one";
    int64_t sum_begin = -1, last_fill = -1;
    for (const trace::Work& work : timeline.work) {
        if (work.kind != trace::SpanKind::kWait) {
            EXPECT_GE(work.cpu, 0);
        }
        if (work.name == "fill") last_fill = std::max(last_fill, work.end_ns);
        if (work.name == "sum") sum_begin = work.begin_ns;
        EXPECT_THAT(timeline.lanes[static_cast<size_t>(work.lane)].name,
                    testing::AnyOf("main", testing::StartsWith(engine_.name + " ")));
    }
    EXPECT_GE(sum_begin, last_fill);
    EXPECT_LE(pauses["waits"], 1);
}

TEST_P(TaskTraceTest, WhatWasWrittenBeforeACrashIsReadable) {
    const Outcome outcome = traced({engine_.name, "killed"}, "killed.jsonl");
    EXPECT_EQ(outcome.exit_code, 128 + 9) << outcome.errors;
    const trace::Timeline timeline(trace::read_file(path("killed.jsonl")));
    EXPECT_GE(timeline.work.size(), 4U);
}

TEST_P(TaskTraceTest, EachProcessMayHaveAFileOfItsOwn) {
    const Outcome outcome = traced({engine_.name}, "100%%-%p.jsonl");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
        const std::string name = entry.path().filename();
        EXPECT_TRUE(name.starts_with("100%-")) << name;
        const trace::Timeline timeline(trace::read_file(entry.path()));
        EXPECT_EQ(name, "100%-" + std::to_string(timeline.clients.at(0).pid) + ".jsonl");
        ++files;
    }
    EXPECT_EQ(files, 1);
}

TEST_P(TaskTraceTest, AFileThatCannotBeWrittenEndsTheProgramWithWords) {
    const Outcome outcome = traced({engine_.name}, "none/trace.jsonl");
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.errors, HasSubstr("HEDDLE_TRACE: "));
    EXPECT_THAT(outcome.errors, HasSubstr("none/trace.jsonl: cannot write the trace: No such file"));
}

}  // namespace
}  // namespace heddle::test
