// `heddle snet run` on the networks of tests/golden/streams: FOLDER/{net.snet, boxes.c, in.xml, out.xml}.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "golden.hpp"
#include "support/child.hpp"
#include "support/daemon.hpp"
#include "support/tcp_listener.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> networks() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(HEDDLE_TEST_DATA "/golden/streams"))
        if (fs::exists(entry.path() / "net.snet")) names.push_back(entry.path().filename().string());
    return names;
}

/// What `heddle status --json` says, without blanks.
std::string output_of_status(const std::string& arbiter, const std::string& file) {
    fs::remove(file);
    Child status({kHeddle, "status", "--json"}, {"HEDDLE_ARBITER=" + arbiter}, -1, file);
    if (!status.ends_within(60s) || status.reap() != 0) return "";
    std::string text = file_text(file);
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
    return text;
}

class SnetGoldenTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Networks, SnetGoldenTest, testing::ValuesIn(networks()),
                         [](const auto& name) { return name.param; });

/// All of them keep order, by "||", "**" and "!!", or because there is one way: however many workers run.
TEST_P(SnetGoldenTest, GivesTheRecordsOfItsFile) {
    const std::string folder = HEDDLE_TEST_DATA "/golden/streams/" + GetParam();
    for (const char* workers : {"1", "2", "4"}) {
        const std::string calls = std::string(workers) + "D";
        const TemporaryFolder work;
        const std::string out = work.path() + "/out.xml";
        std::vector<std::string> command{kHeddle,   "snet",
                                         "run",     folder + "/net.snet",
                                         "-i",      folder + "/in.xml",
                                         "-o",      out,
                                         "-w",      workers,
                                         "--calls", calls,
                                         "--bound", "2"};
        if (fs::exists(folder + "/boxes.c")) command.insert(command.end(), {"--boxes", folder + "/boxes.c"});
        Child child(command, {}, -1, work.path() + "/said");
        ASSERT_TRUE(child.ends_within(60s));
        ASSERT_EQ(child.reap(), 0) << file_text(work.path() + "/said");
        expect_golden(folder + "/out.xml", file_text(out));
    }
}

/// With its words on stderr, which is the file "said".
void expect_failure(Child& child, const TemporaryFolder& work, const std::string& words) {
    ASSERT_TRUE(child.ends_within(60s));
    EXPECT_EQ(WEXITSTATUS(child.reap()), 1);
    EXPECT_THAT(file_text(work.path() + "/said"), testing::HasSubstr(words));
}

TEST(SnetCommandTest, CallsOfBoxesThatAreNoneAreTold) {
    const std::string net = HEDDLE_TEST_DATA "/golden/streams/" + networks().front() + "/net.snet";
    for (const auto& [calls, said, code] :
         {std::tuple("0", "no number of calls", 2), std::tuple("4X", "no number of calls", 2),
          std::tuple("2:nobody", "the box \"nobody\", which the program does not have", 1)}) {
        const TemporaryFolder work;
        Child child({kHeddle, "snet", "run", net, "--calls", calls}, {}, -1, work.path() + "/said");
        ASSERT_TRUE(child.ends_within(60s));
        EXPECT_EQ(WEXITSTATUS(child.reap()), code);
        EXPECT_NE(file_text(work.path() + "/said").find(said), std::string::npos)
            << file_text(work.path() + "/said");
    }
}

TEST(SnetCommandTest, CallsMayNameABoxOfANetOfANetOfAnotherFile) {
    const TemporaryFolder work;
    const auto write = [&](const char* name, const std::string& text) {
        std::ofstream(work.path() + "/" + name) << text;
    };
    write("inner.snet",
          "net inner ({<a>} -> {<a>}) { box once ((<a>) -> (<a>)) {<<< C | C4SNetOut(hnd, 1, a); >>>} } "
          "connect once;");
    write("middle.snet", "net middle ({<a>} -> {<a>}) connect inner;");
    write("outer.snet", "net outer ({<a>} -> {<a>}) connect middle;");
    Child child({kHeddle, "snet", "run", work.path() + "/outer.snet", "--calls", "2:once"}, {}, -1,
                work.path() + "/said");
    ASSERT_TRUE(child.ends_within(60s));
    EXPECT_EQ(WEXITSTATUS(child.reap()), 0) << file_text(work.path() + "/said");
}

/// Two programs that never heard of each other: each is told of by its name, its limits and its boxes while
/// both have work, and none loses a record.
TEST(SnetCommandTest, TwoProgramsShareTheMachineThroughTheArbiter) {
    constexpr int kRecords = 200;
    Daemon daemon({"numa:1 core:4 pu:1", {}, {}});
    const std::vector<std::string> variables{"HEDDLE_TOPOLOGY=numa:1 core:4 pu:1",
                                             "HEDDLE_ARBITER=" + daemon.path()};
    const TemporaryFolder work;
    struct Program {
        std::string name, folder;
        int input;
        Child child;
    };
    std::vector<Program> programs;
    for (const auto& [name, max] : {std::pair("first", "3"), std::pair("second", "4")}) {
        const std::string base = work.path() + "/" + name;
        std::ofstream(base + ".snet")
            << "box spin ((<a>) -> (<a>)) { <<< C | for (volatile int i = 0; i < 100000; ++i) {}\n"
               "C4SNetOut(hnd, 1, a); >>> }\nnet n connect spin ! <a>;\n";
        ASSERT_EQ(::mkfifo((base + ".in").c_str(), 0600), 0);
        const int input = ::open((base + ".in").c_str(), O_RDWR | O_CLOEXEC);
        programs.push_back({name, base, input,
                            Child({kHeddle, "snet", "run", base + ".snet", "-i", base + ".in", "-o",
                                   base + ".out", "--min", "1", "--max", max},
                                  variables, -1, base + ".said")});
        std::string text;
        for (int i = 0; i < kRecords; ++i)
            text += fmt::format("<record type=\"data\" mode=\"textual\"><tag label=\"a\">{}</tag></record>\n",
                                i % 8);
        ASSERT_EQ(::write(input, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    const auto seen = [&] {
        const std::string status = output_of_status(daemon.path(), work.path() + "/status");
        for (const char* words : {R"("name":"first")", R"("name":"second")", R"("min":1)", R"("max":3)",
                                  R"("max":4)", R"("name":"boxspin")"})
            if (status.find(words) == std::string::npos) return false;
        return true;
    };
    EXPECT_TRUE(becomes_true(seen, 60s)) << file_text(work.path() + "/status");
    for (Program& program : programs) {
        const std::string end = "<record type=\"terminate\"/>\n";
        ASSERT_EQ(::write(program.input, end.data(), end.size()), static_cast<ssize_t>(end.size()));
        ASSERT_TRUE(program.child.ends_within(60s));
        EXPECT_EQ(program.child.reap(), 0) << file_text(program.folder + ".said");
        ::close(program.input);
        const std::string out = file_text(program.folder + ".out");
        size_t count = 0;
        for (size_t at = out.find("label=\"a\""); at != std::string::npos;
             at = out.find("label=\"a\"", at + 1))
            ++count;
        EXPECT_EQ(count, size_t{kRecords});
    }
}

const std::string kCollatz = HEDDLE_TEST_DATA "/golden/streams/collatz";

/// Once the file has the text; what follows it on its line. Empty: it does not come.
std::string after(const std::string& file, const std::string& text) {
    for (const auto end = std::chrono::steady_clock::now() + 60s; std::chrono::steady_clock::now() < end;) {
        const std::string all = fs::exists(file) ? file_text(file) : "";
        const size_t at = all.find(text);
        if (at != std::string::npos && all.find('\n', at) != std::string::npos)
            return all.substr(at + text.size(), all.find('\n', at) - at - text.size());
        std::this_thread::sleep_for(10ms);
    }
    return {};
}

TEST(SnetCommandTest, RecordsGoFromOneProcessToAnotherByTcp) {
    for (const char* format : {"xml", "binary", "json"}) {
        const TemporaryFolder work;
        std::ofstream(work.path() + "/copy.snet") << "net copy connect [];\n";
        Child second(
            {kHeddle, "snet", "run", kCollatz + "/net.snet", "-i", "tcp:0", "-o", work.path() + "/out.xml"},
            {}, -1, work.path() + "/second");
        const std::string port = after(work.path() + "/second", "waits for records at 127.0.0.1:");
        ASSERT_FALSE(port.empty()) << file_text(work.path() + "/second");
        Child first({kHeddle, "snet", "run", work.path() + "/copy.snet", "-i", kCollatz + "/in.xml", "-o",
                     "tcp:127.0.0.1:" + port, "--format", format},
                    {}, -1, work.path() + "/first");
        ASSERT_TRUE(first.ends_within(60s));
        ASSERT_EQ(first.reap(), 0) << file_text(work.path() + "/first");
        ASSERT_TRUE(second.ends_within(60s));
        ASSERT_EQ(second.reap(), 0) << file_text(work.path() + "/second");
        EXPECT_EQ(file_text(work.path() + "/out.xml"), file_text(kCollatz + "/out.xml"));
    }
}

TEST(SnetCommandTest, WhoTakesTheRecordsMayGoAway) {
    const TemporaryFolder work;
    std::ofstream(work.path() + "/copy.snet") << "net copy connect [];\n";
    {
        std::ofstream in(work.path() + "/in.json");
        for (int i = 0; i < 200'000; ++i) in << "{\"text\": \"warp and weft\", \"<i>\": " << i << "}\n";
    }
    const Listener listener;
    Child child({kHeddle, "snet", "run", work.path() + "/copy.snet", "-i", work.path() + "/in.json", "-o",
                 "tcp:" + listener.port()},
                {}, -1, work.path() + "/said");
    (void)listener.accept();  // and goes
    expect_failure(child, work, "cannot write records");
}

/// A box whose records all fail, and more letters than are written at once.
TEST(SnetCommandTest, ADiskThatIsFullOfDeadLettersEndsTheRun) {
    const TemporaryFolder work;
    std::ofstream(work.path() + "/net.snet")
        << "box bad ((<a>) -> (<a>)) { <<< C | C4SNetOut(hnd, 7, a); >>> }\nnet n connect bad;\n";
    {
        std::ofstream in(work.path() + "/in.json");
        for (int i = 0; i < 2'000; ++i) in << "{\"text\": \"warp and weft, warp and weft\", \"<a>\": 1}\n";
    }
    Child child({kHeddle, "snet", "run", work.path() + "/net.snet", "-i", work.path() + "/in.json", "-o",
                 work.path() + "/out", "--dead-letters", "/dev/full", "--bound", "2"},
                {}, -1, work.path() + "/said");
    expect_failure(child, work, "cannot write records");
}

/// Not each record's failure: no other one can leave, either.
TEST(SnetCommandTest, ADiskThatIsFullOfRecordsEndsTheRunWithDeadLettersToo) {
    const TemporaryFolder work;
    std::ofstream(work.path() + "/net.snet")
        << "box same ((<a>) -> (<a>)) { <<< C | C4SNetOut(hnd, 1, a); >>> }\nnet n connect same;\n";
    {
        std::ofstream in(work.path() + "/in.json");
        for (int i = 0; i < 200'000; ++i) in << "{\"<a>\": 1}\n";
    }
    Child child({kHeddle, "snet", "run", work.path() + "/net.snet", "-i", work.path() + "/in.json", "-o",
                 "/dev/full", "--dead-letters", work.path() + "/letters.json"},
                {}, -1, work.path() + "/said");
    expect_failure(child, work, "cannot write records");
    EXPECT_EQ(file_text(work.path() + "/letters.json").find("{}"), std::string::npos);
}

TEST(SnetCommandTest, WhatIsDoneIsWrittenWhileNothingMoreComes) {
    const TemporaryFolder work;
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Descriptor reads(ends[0]);
    Descriptor writes(ends[1]);
    Child child({kHeddle, "snet", "run", kCollatz + "/net.snet", "-i", "/dev/fd/3", "--format", "json", "-o",
                 work.path() + "/out"},
                {}, reads.get(), work.path() + "/said");
    const std::string record = "{\"<n>\": 6}\n";
    ASSERT_EQ(::write(writes.get(), record.data(), record.size()), static_cast<ssize_t>(record.size()));
    EXPECT_EQ(after(work.path() + "/out", "{\"<steps>\": "), "8}");
    EXPECT_TRUE(child.running());
    writes = Descriptor();
    ASSERT_TRUE(child.ends_within(60s));
    EXPECT_EQ(child.reap(), 0) << file_text(work.path() + "/said");
    EXPECT_EQ(file_text(work.path() + "/out"), "{\"<steps>\": 8}\n{\"terminate\": true}\n");
}

/// Who writes may wait for the answer to what it wrote.
TEST(SnetCommandTest, AFailureEndsTheRunWhileNothingMoreComes) {
    const TemporaryFolder work;
    std::ofstream(work.path() + "/net.snet")
        << "box same ((<n>) -> (<n>)) { <<< C | C4SNetOut(hnd, 1, n); >>> }\n"
        << "net n connect same .. [{<n>} -> {<n = 10 / n>}];\n";
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Descriptor reads(ends[0]), writes(ends[1]);
    Child child({kHeddle, "snet", "run", work.path() + "/net.snet", "-i", "/dev/fd/3", "--format", "json"},
                {}, reads.get(), work.path() + "/said");
    const std::string record = "{\"<n>\": 0}\n";
    ASSERT_EQ(::write(writes.get(), record.data(), record.size()), static_cast<ssize_t>(record.size()));
    expect_failure(child, work, "zero");
}

/// It is written some time after the box has ended, when nobody reads or writes.
TEST(SnetCommandTest, OutputThatCannotBeWrittenEndsTheRunWhileNothingMoreComes) {
    const TemporaryFolder work;
    std::ofstream(work.path() + "/net.snet")
        << "box slow ((<n>) -> (<n>)) { <<< C | usleep(100000); C4SNetOut(hnd, 1, n); >>> }\n"
        << "net n connect slow;\n";
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Descriptor reads(ends[0]), writes(ends[1]);
    Child child({kHeddle, "snet", "run", work.path() + "/net.snet", "-i", "/dev/fd/3", "-o", "/dev/full"}, {},
                reads.get(), work.path() + "/said");
    const std::string record = "{\"<n>\": 0}\n";
    ASSERT_EQ(::write(writes.get(), record.data(), record.size()), static_cast<ssize_t>(record.size()));
    expect_failure(child, work, "cannot write records");
}

TEST(SnetCommandTest, NullThatABoxSendsFailsTheRecord) {
    const TemporaryFolder work;
    std::ofstream(work.path() + "/net.snet")
        << "box null ((<n>) -> (x)) { <<< C | C4SNetOut(hnd, 1, C4SNetCreate(CTYPE_int, n, NULL)); >>> }\n"
        << "net n connect null;\n";
    std::ofstream(work.path() + "/in.json") << "{\"<n>\": 1}\n";
    Child child({kHeddle, "snet", "run", work.path() + "/net.snet", "-i", work.path() + "/in.json",
                 "--format", "json"},
                {}, -1, work.path() + "/said");
    expect_failure(child, work, "the box \"null\" sends NULL");
}

TEST(SnetCommandTest, ARecordIsReadWhereItsEndComesInPieces) {
    for (const size_t cut : {1, 2, 7, 8, 9}) {
        const TemporaryFolder work;
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        const Descriptor reads(ends[0]);
        Descriptor writes(ends[1]);
        Child child({kHeddle, "snet", "run", kCollatz + "/net.snet", "-i", "/dev/fd/3", "--format", "json",
                     "-o", work.path() + "/out"},
                    {}, reads.get(), work.path() + "/said");
        const std::string record =
            "<?xml version=\"1.0\" ?>\n<record xmlns=\"snet-home.org\" type=\"data\" mode=\"textual\">"
            "<tag label=\"n\">6</tag></record>";
        const std::string_view pieces[] = {std::string_view(record).substr(0, record.size() - cut),
                                           std::string_view(record).substr(record.size() - cut)};
        for (const std::string_view piece : pieces) {
            ASSERT_EQ(::write(writes.get(), piece.data(), piece.size()), static_cast<ssize_t>(piece.size()));
            std::this_thread::sleep_for(100ms);  // so that they are read one by one
        }
        EXPECT_EQ(after(work.path() + "/out", "{\"<steps>\": "), "8}") << "cut " << cut << " before the end";
        writes = Descriptor();
        ASSERT_TRUE(child.ends_within(60s));
    }
}

TEST(SnetCommandTest, CallsOfBoxesAreTraced) {
    const TemporaryFolder work;
    std::ofstream(work.path() + "/net.snet")
        << "box spin ((<a>) -> (<a>)) { <<< C | for (volatile int i = 0; i < 100000; ++i) {}\n"
           "C4SNetOut(hnd, 1, a); >>> }\nnet n connect spin;\n";
    std::ofstream(work.path() + "/in.json") << "{\"<a>\": 1}\n{\"<a>\": 2}\n";
    Child child({kHeddle, "snet", "run", work.path() + "/net.snet", "-i", work.path() + "/in.json"},
                {"HEDDLE_TRACE=" + work.path() + "/trace"}, -1, work.path() + "/said");
    ASSERT_TRUE(child.ends_within(60s));
    ASSERT_EQ(child.reap(), 0) << file_text(work.path() + "/said");
    const std::string trace = file_text(work.path() + "/trace");
    size_t calls = 0;
    for (size_t at = 0; (at = trace.find("\"spin\"", at)) != std::string::npos; ++at) ++calls;
    EXPECT_EQ(calls, 2U) << trace;
    EXPECT_NE(trace.find("\"spin (queue)\""), std::string::npos) << trace;
    Child drawn({kHeddle, "trace", "summary", work.path() + "/trace"}, {}, -1, work.path() + "/summary");
    ASSERT_TRUE(drawn.ends_within(60s));
    EXPECT_EQ(drawn.reap(), 0) << file_text(work.path() + "/summary");
}

TEST(SnetCommandTest, GraphIsAPictureWhereGraphvizIs) {
    const TemporaryFolder work;
    const std::string pairs = HEDDLE_TEST_DATA "/golden/streams/pairs/net.snet";  // nothing for cpp in it
    const bool there = std::system("command -v dot >/dev/null") == 0;
    Child child({kHeddle, "snet", "graph", pairs}, {}, -1, work.path() + "/said");
    ASSERT_TRUE(child.ends_within(60s));
    ASSERT_EQ(child.reap(), 0);
    const std::string said = file_text(work.path() + "/said");
    EXPECT_NE(said.find(there ? "</svg>" : "net pairs"), std::string::npos) << said;
    // Where there is none, text takes its place.
    Child without({kHeddle, "snet", "graph", pairs}, {"PATH=/nowhere"}, -1, work.path() + "/without");
    ASSERT_TRUE(without.ends_within(60s));
    ASSERT_EQ(without.reap(), 0);
    EXPECT_NE(file_text(work.path() + "/without").find("net pairs"), std::string::npos)
        << file_text(work.path() + "/without");
}

}  // namespace
}  // namespace heddle::test
