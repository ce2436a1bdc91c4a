// What threads note is in the file, row by row; what did not fit is counted.
#include "trace/work_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "heddle/error.hpp"
#include "support/temporary_folder.hpp"
#include "trace/reader.hpp"
#include "trace/timeline.hpp"

namespace heddle::trace {
namespace {

struct WorkLogTest : testing::Test {
    test::TemporaryFolder folder;
    const std::string file = folder.path() + "/trace.jsonl";
    const Machine machine = Machine::synthetic("core:2 pu:1");

    [[nodiscard]] static NotedWork piece(const char* name, SpanKind kind = SpanKind::kWork) {
        const int64_t now = SteadyClock().now().time_since_epoch().count();
        return {name, now, now + 1, 0, 1, kind};
    }
    [[nodiscard]] std::map<std::string, int> rows() const {
        std::map<std::string, int> count;
        const Trace trace = read_file(file);
        for (const Event& event : trace.events)
            if (const auto* span = std::get_if<Span>(&event.what)) ++count[span->lane + ": " + span->name];
        return count;
    }
};

TEST_F(WorkLogTest, RowsOfOthersAreGivenBackWithAllThatWasNotedThere) {
    constexpr int kTimes = WorkLog::kMostRings + 100;
    {
        WorkLog log(file, machine, "program");
        for (int i = 0; i < kTimes; ++i) {
            const std::shared_ptr<WorkLog::Lane> lane = log.open_lane("device");
            ASSERT_NE(lane, nullptr) << i;
            log.note(lane, piece("kernel"));
            if (i % 50 == 0) log.flush();
        }
    }
    EXPECT_EQ(rows()["device: kernel"], kTimes);
}

TEST_F(WorkLogTest, ThreadsHaveRowsByTheirKind) {
    {
        WorkLog log(file, machine, "program");
        log.note("native", piece("a"));
        for (int i = 0; i < 2; ++i) std::thread([&] { log.note("native", piece("b")); }).join();
        std::thread([&] {
            log.note("openmp", piece("c"));
            std::thread([&] { log.note("openmp", piece("d")); }).join();
        }).join();
        log.finish();
        log.note("native", piece("late"));
    }
    using testing::Pair;
    EXPECT_THAT(rows(), testing::ElementsAre(Pair("main: a", 1), Pair("native 1: b", 2),
                                             Pair("openmp 1: c", 1), Pair("openmp 2: d", 1)))
        << "a thread has the row of one that has ended";
    const Trace trace = read_file(file);
    EXPECT_TRUE(trace.warnings.empty());
    EXPECT_EQ(std::get<Joined>(trace.events.front().what).name, "program");
    EXPECT_EQ(std::get<Mark>(trace.events.back().what).text, kEndMark);
}

TEST_F(WorkLogTest, WhatAThreadNotesTooFastIsDroppedAndCounted) {
    constexpr int kPieces = 1'000'000;
    {
        WorkLog log(file, machine, "program");
        for (int i = 0; i < kPieces; ++i) log.note("native", piece("short"));
    }
    const Timeline timeline(read_file(file));
    EXPECT_EQ(static_cast<int64_t>(timeline.work.size()) + timeline.dropped, kPieces);
    EXPECT_GT(timeline.work.size(), WorkLog::kRing - 1);
}

TEST_F(WorkLogTest, IsReadableWhileItIsWritten) {
    WorkLog log(file, machine, "program");
    log.note("native", piece("a", SpanKind::kPaused));
    log.flush();
    EXPECT_EQ(rows().at("main: a"), 1);
}

TEST_F(WorkLogTest, ACpuThatTheMachineDoesNotHaveIsNotNamed) {
    {
        WorkLog log(file, machine, "program");
        NotedWork work = piece("a");
        work.cpu = 77;
        log.note("native", work);
    }
    EXPECT_EQ(rows().at("main: a"), 1);
}

TEST_F(WorkLogTest, AFileThatCannotBeWrittenIsAnError) {
    try {
        WorkLog log(folder.path() + "/none/trace.jsonl", machine, "program");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kSystem);
        EXPECT_THAT(error.what(),
                    testing::HasSubstr("none/trace.jsonl: cannot write the trace: No such file"));
    }
    EXPECT_THROW(WorkLog("/dev/full", machine, "program"), Error);
}

}  // namespace
}  // namespace heddle::trace
