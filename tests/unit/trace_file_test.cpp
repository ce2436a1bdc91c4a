#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "golden.hpp"
#include "heddle/error.hpp"
#include "trace/reader.hpp"
#include "trace/writer.hpp"

using namespace heddle::trace;
using heddle::Error;
using heddle::ErrorCode;
using heddle::test::file_text;
using testing::HasSubstr;

namespace {

constexpr const char* kHeader =
    R"({"heddle_trace":1,"machine":"m","start_ns":0,"cpus":[[0,0,0,0],[1,1,0,0]]})";

Trace read_text(const std::string& text, const ReadLimits& limits = {}) {
    std::istringstream in(text);
    return read(in, "t.jsonl", limits);
}

Header header() {
    return {"2 CPUs", {{0, 0, 0, 0}, {1, 1, 0, 0}}, 1'000'000, {}};
}

struct TraceFile : testing::Test {
    std::string path = testing::TempDir() + "heddle_trace_" + std::to_string(getpid()) + ".jsonl";
    ~TraceFile() override { std::filesystem::remove(path); }
};

// What a reader says to header plus this line.
std::string complaint(const std::string& text) {
    try {
        (void)read_text(text);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_F(TraceFile, EveryEventSurvivesTheRoundTrip) {
    Header written = header();
    written.wall_ns = 1'700'000'000'000'000'000;
    const std::string odd = "a\"b\\c\n\x01\x7f <&> é";
    {
        TraceWriter writer(path, written);
        const Client one{1};
        const Client two{4'000'000'000};
        for (const Event& event : std::vector<Event>{{0, Joined{one, 42, odd}},
                                                     {1, CpuChanged{1, one, two, "openmp"}},
                                                     {2, CpuChanged{1, {}, {}, ""}},
                                                     {3, DemandChanged{one, 3}},
                                                     {4, WaitingChanged{one, 2}},
                                                     {5, Mark{odd}},
                                                     {6, Span{one, "worker 0", "work", 2}},
                                                     {7, Left{one, Departure::kKilled}},
                                                     {kMaxTime_ns, Left{two, Departure::kDetached}}})
            EXPECT_EQ(writer.write(event), Written::kYes);
    }
    const Trace trace = read_file(path);
    EXPECT_TRUE(trace.warnings.empty());
    EXPECT_EQ(trace.header.machine, "2 CPUs");
    EXPECT_EQ(trace.header.start_ns, 1'000'000);
    EXPECT_EQ(trace.header.wall_ns, written.wall_ns);
    ASSERT_EQ(trace.header.cpus.size(), 2U);
    EXPECT_EQ(trace.header.cpus[1].core, 1);
    ASSERT_EQ(trace.events.size(), 9U);
    const auto& joined = std::get<Joined>(trace.events[0].what);
    EXPECT_EQ(joined.pid, 42);
    EXPECT_EQ(joined.name, odd);
    const auto& cpu = std::get<CpuChanged>(trace.events[1].what);
    EXPECT_EQ(cpu.cpu, 1);
    EXPECT_EQ(cpu.user, Client{1});
    EXPECT_EQ(cpu.owner, Client{4'000'000'000});
    EXPECT_EQ(cpu.component, "openmp");
    EXPECT_FALSE(std::get<CpuChanged>(trace.events[2].what).user);
    EXPECT_EQ(std::get<DemandChanged>(trace.events[3].what).cpus, 3);
    EXPECT_EQ(std::get<WaitingChanged>(trace.events[4].what).cpus, 2);
    EXPECT_EQ(std::get<Mark>(trace.events[5].what).text, odd);
    EXPECT_EQ(std::get<Span>(trace.events[6].what).begin_ns, 2);
    EXPECT_EQ(std::get<Left>(trace.events[7].what).how, Departure::kKilled);
    EXPECT_EQ(trace.events[8].at_ns, kMaxTime_ns);
}

TEST_F(TraceFile, HostileNamesStayReadable) {
    {
        TraceWriter writer(path, header());
        (void)writer.write({0, Joined{{1}, 1, "\xff\xfe\xc3(\xed\xa0\x80 broken"}});
        (void)writer.write({0, Joined{{2}, 1, std::string(100'000, '\x01')}});
        (void)writer.write({0, Joined{{3}, 1, std::string(1023, 'x') + "é"}});
    }
    const Trace trace = read_file(path);
    ASSERT_EQ(trace.events.size(), 3U);
    EXPECT_THAT(std::get<Joined>(trace.events[0].what).name, HasSubstr(" broken"));
    EXPECT_EQ(std::get<Joined>(trace.events[1].what).name.size(), TraceWriter::kMaxText);
    EXPECT_EQ(std::get<Joined>(trace.events[2].what).name.substr(0, 1023), std::string(1023, 'x'));
}

TEST_F(TraceFile, TheBoundEndsTheFileWithAMark) {
    constexpr size_t kBound = 2'000;
    TraceWriter writer(path, header(), {kBound});
    int accepted = 0;
    while (accepted < 1'000 && writer.write({accepted, DemandChanged{{1}, accepted % 3}}) == Written::kYes)
        ++accepted;
    EXPECT_GT(accepted, 10);
    EXPECT_EQ(writer.write({5'000, Mark{"late"}}), Written::kTruncated);
    writer.finish(6'000);
    EXPECT_LE(std::filesystem::file_size(path), kBound);
    EXPECT_GT(std::filesystem::file_size(path), kBound - 200);
    const Trace trace = read_file(path);
    ASSERT_EQ(trace.events.size(), static_cast<size_t>(accepted) + 1);
    EXPECT_EQ(std::get<Mark>(trace.events.back().what).text, kTruncatedMark);
    EXPECT_EQ(trace.events.back().at_ns, accepted);
}

TEST_F(TraceFile, ABoundBelowTheHeaderIsRefused) {
    EXPECT_THROW(TraceWriter(path, header(), {100}), Error);
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(TraceFile, OfAnotherThatWritesItIsLeftAlone) {
    {
        TraceWriter first(path, header());
        (void)first.write({7, Mark{"here"}});
        EXPECT_THAT(
            [&] { TraceWriter(path, header()); },
            testing::ThrowsMessage<Error>(testing::HasSubstr("another process writes its trace there")));
    }
    EXPECT_EQ(read_file(path).events.size(), 1U);
    TraceWriter(path, header());
    EXPECT_TRUE(read_file(path).events.empty()) << "it has gone, and what it wrote makes room";
}

TEST_F(TraceFile, FinishSaysHowLongTheTraceIs) {
    TraceWriter writer(path, header());
    writer.finish(99);
    EXPECT_EQ(writer.write({100, Mark{"late"}}), Written::kTruncated);
    const Trace trace = read_file(path);
    ASSERT_EQ(trace.events.size(), 1U);
    EXPECT_EQ(std::get<Mark>(trace.events[0].what).text, kEndMark);
}

TEST_F(TraceFile, WhatWasFlushedIsThere) {
    TraceWriter writer(path, header());
    (void)writer.write({7, Mark{"here"}});
    EXPECT_TRUE(read_file(path).events.empty());
    writer.flush();
    EXPECT_EQ(read_file(path).events.size(), 1U);
}

TEST_F(TraceFile, TimesAreCountedFromTheStart) {
    const TraceWriter writer(path, header());
    const auto moment = [](int64_t ns) { return heddle::Time(heddle::Nanoseconds(ns)); };
    EXPECT_EQ(writer.at(moment(1'000'005)), 5);
    EXPECT_EQ(writer.at(moment(3)), 0) << "before the start";
}

TEST(TraceWriter, AFullDiskIsReportedOnce) {
    EXPECT_THROW(TraceWriter("/dev/full", header()), Error);
    EXPECT_THROW(TraceWriter("/no/such/folder/t.jsonl", header()), Error);
}

TEST(TraceReader, SortsEventsAndKeepsTheOrderOfOneMoment) {
    const Trace trace = read_text(std::string(kHeader) + R"(
{"t":9,"e":"mark","text":"last"}
{"t":3,"e":"mark","text":"a"}
{"t":3,"e":"mark","text":"b"}
{"t":1,"e":"mark","text":"first"}
)");
    std::string order;
    for (const Event& event : trace.events) order += std::get<Mark>(event.what).text + " ";
    EXPECT_EQ(order, "first a b last ");
}

TEST(TraceReader, ATornLastLineIsAWarning) {
    const std::string whole = std::string(kHeader) + "\n{\"t\":3,\"e\":\"mark\",\"text\":\"a\"}\n";
    const std::string last = R"({"t":4,"e":"mark","text":"b"})";
    for (size_t length = 1; length < last.size(); ++length) {
        const Trace trace = read_text(whole + last.substr(0, length));
        EXPECT_EQ(trace.events.size(), 1U);
        ASSERT_EQ(trace.warnings.size(), 1U) << length;
        EXPECT_THAT(trace.warnings[0], HasSubstr("t.jsonl:3: the last line is torn"));
    }
    EXPECT_EQ(read_text(whole + last).events.size(), 2U) << "only its newline is missing";
    EXPECT_THAT(complaint(whole + last.substr(0, 9) + "\n"), HasSubstr("t.jsonl:3: "))
        << "torn, but not the last";
}

// Each case of the file: a line to follow the header, a tab, and what the complaint must contain.
TEST(TraceReader, MalformedLinesAreNamed) {
    std::istringstream cases(file_text(HEDDLE_TEST_DATA "/golden/trace/malformed.txt"));
    int count = 0;
    for (std::string line; std::getline(cases, line); ++count) {
        const size_t tab = line.find('\t');
        ASSERT_NE(tab, std::string::npos) << line;
        const std::string said = complaint(fmt::format("{}\n{}\n", kHeader, line.substr(0, tab)));
        EXPECT_THAT(said, HasSubstr("t.jsonl:2: ")) << line;
        EXPECT_THAT(said, HasSubstr(line.substr(tab + 1))) << line;
    }
    EXPECT_GT(count, 20);
}

TEST(TraceReader, TheFirstLineMustBeAHeader) {
    for (const char* bad : {"", "\n", "{}\n", "hello\n", "{\"t\":1,\"e\":\"mark\",\"text\":\"a\"}\n"})
        EXPECT_THAT(complaint(bad), HasSubstr("t.jsonl:1: this is not a heddle trace")) << bad;
    EXPECT_THAT(complaint(R"({"heddle_trace":2})"), HasSubstr("version 2"));
    EXPECT_THAT(complaint(std::string(kHeader).substr(0, 30)), HasSubstr("t.jsonl:1: ")) << "torn";
    EXPECT_THAT(complaint(R"({"heddle_trace":1,"machine":"m","start_ns":0,"cpus":[[0,0,0,0],[0,1,0,0]]})"),
                HasSubstr("CPU 0 is twice"));
    EXPECT_THAT(complaint(R"({"heddle_trace":1,"machine":"m","start_ns":0,"cpus":[[0,0]]})"),
                HasSubstr("[cpu,core,package,numa]"));
}

TEST(TraceReader, SizesAreBounded) {
    const std::string line = "\n{\"t\":3,\"e\":\"want\",\"c\":1,\"n\":1}";
    ReadLimits limits;
    limits.max_events = 2;
    EXPECT_EQ(read_text(kHeader + line + line, limits).events.size(), 2U);
    EXPECT_THROW((void)read_text(kHeader + line + line + line, limits), Error);
    limits = {};
    limits.max_line_bytes = 20;
    EXPECT_THROW((void)read_text(kHeader + line, limits), Error);
    limits = {};
    limits.max_clients = 1;
    EXPECT_THROW((void)read_text(kHeader + line + "\n{\"t\":3,\"e\":\"want\",\"c\":2,\"n\":1}", limits),
                 Error);
    const std::string deep(60'000, '[');
    EXPECT_THAT(complaint(std::string(kHeader) + "\n" + deep + "\n"), HasSubstr("not a JSON object"));
}
