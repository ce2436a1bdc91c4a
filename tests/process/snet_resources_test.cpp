// `heddle snet serve` between an arbiter and two programs: one that speaks the words of S-Net's FRONT as its
// source has them, and `heddle snet run --resource-server`.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "golden.hpp"
#include "support/child.hpp"
#include "support/daemon.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {
namespace {

const std::string kTopology = "HEDDLE_TOPOLOGY=numa:1 core:4 pu:1";

/// A program of FRONT's: src/resource/resserver.c of the public run-time system is the order of its messages.
class FrontProgram {
  public:
    explicit FrontProgram(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in server{};
        server.sin_family = AF_INET;
        server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        server.sin_port = htons(static_cast<uint16_t>(port));
        EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&server), sizeof server), 0);
        const timeval limit{60, 0};
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    }
    void set_up() {
        say("{ list }");
        EXPECT_EQ(next(), "{ systems 0 }");
        say("{ access 0 }{ topology 0 }");
        EXPECT_NE(next().find("proc 0 logical 3 physical 3"), std::string::npos);
    }
    void say(const std::string& text) const {
        EXPECT_EQ(::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(text.size()));
    }
    /// The next message; empty: it has been hung up.
    std::string next() {
        while (true) {
            int depth = 0;
            for (size_t i = 0; i < heard_.size(); ++i) {
                if (heard_[i] == '{') ++depth;
                if (heard_[i] != '}' || --depth > 0) continue;
                const size_t begin = heard_.find('{');
                const std::string message = heard_.substr(begin, i + 1 - begin);
                heard_.erase(0, i + 1);
                return message;
            }
            char bytes[1024];
            const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
            if (got <= 0) return "";
            heard_.append(bytes, static_cast<size_t>(got));
        }
    }
    [[nodiscard]] bool hears_nothing_for(std::chrono::milliseconds time) const {
        pollfd ready{socket_.get(), POLLIN, 0};
        return heard_.find('{') == std::string::npos &&
               ::poll(&ready, 1, static_cast<int>(time.count())) == 0;
    }
    /// Takes the next grant or revocation, and answers as FRONT does.
    void obey() {
        const std::string message = next();
        std::smatch parts;
        ASSERT_TRUE(std::regex_match(message, parts, std::regex(R"(\{ (grant|revoke) 0 ([0-9 ]+) \})")))
            << message;
        std::istringstream numbers(parts[2]);
        for (int proc = 0; numbers >> proc;) {
            if (parts[1] == "grant")
                EXPECT_TRUE(has.insert(proc).second) << "granted twice: " << message;
            else
                EXPECT_EQ(has.erase(proc), 1U) << "revoked, and never granted: " << message;
        }
        say(fmt::format("{{ {} 0 {} }}", parts[1] == "grant" ? "accept" : "return", parts[2].str()));
    }
    void take_all() {
        set_up();
        say("{ local 4 }");
        while (has.size() < 4) ASSERT_NO_FATAL_FAILURE(obey());
    }
    std::set<int> has;

  private:
    Descriptor socket_;
    std::string heard_;
};

class SnetResourcesTest : public testing::Test {
  protected:
    void SetUp() override {
        serve_ = Child({kHeddle, "snet", "serve", "--port", "0"},
                       {"HEDDLE_ARBITER=" + daemon_.path(), kTopology}, -1, work_.path() + "/serve");
        const auto says = [&] {
            std::ifstream file(work_.path() + "/serve");
            std::string line;
            return std::getline(file, line) && !file.eof() &&
                   std::sscanf(line.c_str(), "listens at 127.0.0.1:%d", &port_) == 1;
        };
        ASSERT_TRUE(becomes_true(says, 60s));
    }
    Daemon daemon_{{"numa:1 core:4 pu:1", {}, {}}};
    TemporaryFolder work_;
    Child serve_;
    int port_ = 0;
};

TEST_F(SnetResourcesTest, AProgramOfFrontAndOneOfOursShareTheMachine) {
    constexpr int kRecords = 100;
    FrontProgram front(port_);
    ASSERT_NO_FATAL_FAILURE(front.take_all());

    const std::string base = work_.path() + "/ours";
    std::ofstream(base + ".snet")
        << "box spin ((<a>) -> (<a>)) { <<< C | for (volatile int i = 0; i < 1000; ++i) {}\n"
           "C4SNetOut(hnd, 1, a); >>> }\nnet n connect spin ! <a>;\n";
    {
        std::ofstream in(base + ".json");
        for (int i = 0; i < kRecords; ++i) in << "{\"<a>\": " << i % 8 << "}\n";
    }
    Child ours({kHeddle, "snet", "run", base + ".snet", "-i", base + ".json", "-o", base + ".out", "--format",
                "json", "--resource-server", std::to_string(port_)},
               {kTopology}, -1, base + ".said");
    // It cannot run before something was revoked here.
    while (front.has.size() == 4) ASSERT_NO_FATAL_FAILURE(front.obey());
    // What it does not need any more comes back.
    while (front.has.size() < 4) ASSERT_NO_FATAL_FAILURE(front.obey());
    ASSERT_TRUE(ours.ends_within(60s));
    EXPECT_EQ(ours.reap(), 0) << file_text(base + ".said");
    std::istringstream out(file_text(base + ".out"));
    int lines = 0;
    for (std::string line; std::getline(out, line);) ++lines;
    EXPECT_EQ(lines, kRecords + 1);

    front.say("{ quit }");
    EXPECT_EQ(front.next(), "");
    serve_.signal(SIGTERM);
    ASSERT_TRUE(serve_.ends_within(60s));
    EXPECT_EQ(serve_.reap(), 0);
}

/// What no box does is a worker's, too: it keeps its CPU while it goes on.
TEST_F(SnetResourcesTest, WhoReadsAndFiltersHasACpuForIt) {
    FrontProgram front(port_);
    ASSERT_NO_FATAL_FAILURE(front.take_all());
    const std::string base = work_.path() + "/count";
    std::ofstream(base + ".snet")
        << "net count connect [{<n>} -> {<n = n - 1>, <on>}] \\ {<n>, <on>} if <n > 0>;\n";
    std::ofstream(base + ".json") << "{\"<n>\": 2000000000}\n";
    Child ours({kHeddle, "snet", "run", base + ".snet", "-i", base + ".json", "-o", "/dev/null", "--turns",
                "2000000000", "--resource-server", std::to_string(port_)},
               {kTopology}, -1, base + ".said");
    while (front.has.size() == 4) ASSERT_NO_FATAL_FAILURE(front.obey());
    for (int i = 0; i < 10; ++i) {
        if (!front.hears_nothing_for(50ms)) {
            ASSERT_NO_FATAL_FAILURE(front.obey());
        }
        EXPECT_LT(front.has.size(), 4U);
    }
    EXPECT_TRUE(ours.running()) << file_text(base + ".said");
    ours.signal(SIGKILL);
    while (front.has.size() < 4) ASSERT_NO_FATAL_FAILURE(front.obey());
}

/// Also where nobody else wanted it meanwhile, so that the arbiter has not heard of it.
TEST_F(SnetResourcesTest, WhatWasGivenBackIsGrantedAgain) {
    FrontProgram front(port_);
    ASSERT_NO_FATAL_FAILURE(front.take_all());
    front.say("{ local 2 }{ return 0 2 3 }{ state }");
    front.has = {0, 1};
    EXPECT_NE(front.next().find("local 2 remote 0 \n    granted 2"), std::string::npos);
    front.say("{ local 4 }");
    while (front.has.size() < 4) ASSERT_NO_FATAL_FAILURE(front.obey());
}

TEST_F(SnetResourcesTest, WhoSaysNonsenseLosesWhatItHadAndNobodyElseDoes) {
    FrontProgram first(port_), second(port_);
    ASSERT_NO_FATAL_FAILURE(first.take_all());
    for (const char* said : {"{ accept 0 99 }", "GET / HTTP/1.1\r\n\r\n", "{ local -1 }", "{ shutdown }"}) {
        FrontProgram hostile(port_);
        hostile.say(said);
        EXPECT_EQ(hostile.next(), "") << said;
    }
    first.say("{ return 0 0 1 2 3 99 }");
    EXPECT_EQ(first.next(), "");
    ASSERT_NO_FATAL_FAILURE(second.take_all());
    EXPECT_TRUE(serve_.running());
}

TEST_F(SnetResourcesTest, ARunWithoutItsServerIsRefused) {
    std::ofstream(work_.path() + "/copy.snet") << "net copy connect [];\n";
    for (const char* place : {"nowhere", "127.0.0.1:1"}) {
        Child run({kHeddle, "snet", "run", work_.path() + "/copy.snet", "--resource-server", place}, {}, -1,
                  work_.path() + "/said");
        ASSERT_TRUE(run.ends_within(60s));
        EXPECT_EQ(WEXITSTATUS(run.reap()), 1) << file_text(work_.path() + "/said");
    }
}

}  // namespace
}  // namespace heddle::test
