// heddle status, top and trace record against a live arbiter of a synthetic machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cores/observer.hpp"
#include "cores/outside.hpp"
#include "heddle/cores.hpp"
#include "heddle/machine.hpp"
#include "heddle/memory.hpp"
#include "support/daemon.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"
#include "trace/reader.hpp"

namespace heddle::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using namespace std::chrono_literals;

std::string output_of(const std::string& command) {
    std::string text;
    FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return text;
    std::array<char, 4096> block;
    for (size_t count = 0; (count = fread(block.data(), 1, block.size(), pipe)) > 0;)
        text.append(block.data(), count);
    pclose(pipe);
    return text;
}

class StatusTool : public testing::Test {
  protected:
    std::string tool(const std::string& words) const {
        return "HEDDLE_TOPOLOGY='" + topology_ + "' HEDDLE_ARBITER=" + daemon_.path() +
               " " HEDDLE_BUILD_DIR "/bin/heddle " + words;
    }
    WireClient client(const char* name, uint32_t demand) {
        WireClient joined(daemon_.path());
        EXPECT_TRUE(joined.join(hello_of(name, demand)));
        return joined;
    }

    std::string topology_ = "numa:1 core:4 pu:1";
    Daemon daemon_{{topology_, {}, {}}};
};

TEST_F(StatusTool, WhatDoesNotArriveIsAFailure) {
    if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
    for (const char* words : {"status", "status --json", "info", "top --count 1"}) {
        const std::string said = output_of("(" + tool(words) + " > /dev/full; echo $?)");
        EXPECT_THAT(said, testing::EndsWith("No space left on device\n1\n")) << words;
    }
}

TEST_F(StatusTool, JsonHasTheKeysOfTheContract) {
    const WireClient a = client("weaver", 4);
    const std::string text = output_of(tool("status --json"));
    const json status = json::parse(text);
    std::vector<std::string> members;
    const auto in_order = nlohmann::ordered_json::parse(text);
    for (const auto& member : in_order.items()) members.push_back(member.key());
    EXPECT_THAT(members, testing::ElementsAre("arbiter", "core_seconds", "cpus", "clients"));
    EXPECT_EQ(status["arbiter"]["policy"], "proportional");
    EXPECT_EQ(status["arbiter"]["pid"], daemon_.process().pid());
    EXPECT_TRUE(status["arbiter"]["uptime_s"].is_number());
    for (const char* part : {"used", "lent", "idle"})
        EXPECT_TRUE(status["core_seconds"][part].is_number()) << part;
    ASSERT_EQ(status["cpus"].size(), 4U);
    EXPECT_EQ(status["cpus"][3]["cpu"], 3);
    EXPECT_EQ(status["cpus"][3]["client"], status["clients"][0]["id"]);
    EXPECT_TRUE(status["cpus"][3].at("component").is_null()) << "it says nothing of components";
    const json& shown = status["clients"][0];
    EXPECT_EQ(shown["name"], "weaver");
    EXPECT_EQ(shown["pid"], getpid());
    EXPECT_EQ(shown["demand"], 4);
    EXPECT_EQ(shown["granted"], json({0, 1, 2, 3}));
    EXPECT_EQ(shown["min"], 0);
    EXPECT_EQ(shown["max"], 0);
    EXPECT_EQ(shown["weight"], 1);
}

/// This process as a program whose components share the CPUs that the daemon gives it.
class Program {
  public:
    explicit Program(const std::string& arbiter) : outside_(exchange_, options(arbiter)) {}
    Exchange& exchange() { return exchange_; }
    [[nodiscard]] bool joined() const { return outside_.joined(); }

  private:
    static ArbiterClientOptions options(const std::string& arbiter) {
        ArbiterClientOptions options;
        options.path = arbiter;
        options.name = "mill";
        options.allowed = CpuSet::range(0, 4);
        return options;
    }
    Exchange exchange_{Machine::synthetic("numa:1 core:4 pu:1")};
    Outside outside_;
};

TEST_F(StatusTool, TheComponentOfEachCpuFollowsWhatTheyLendToEachOther) {
    Program program(daemon_.path());
    ASSERT_TRUE(program.joined());
    const auto components = [&] {
        const json status = json::parse(output_of(tool("status --json")));
        json shown = json::array();
        for (const json& cpu : status["cpus"]) shown.push_back(cpu["component"]);
        return shown;
    };
    Component warp(program.exchange(), "warp", {0, 1, 2});
    Component weft(program.exchange(), "weft\x1b[2J", {});
    EXPECT_EQ(components(), json({"warp", "warp", "warp", nullptr}));
    ASSERT_EQ(weft.acquire_cpus(3), heddle::Outcome::kNoted);
    ASSERT_EQ(warp.lend_cpu(2), heddle::Outcome::kSuccess);
    EXPECT_EQ(components(), json({"warp", "warp", "weft?[2J", "weft?[2J"}));
    EXPECT_THAT(output_of(tool("status")),
                testing::AllOf(testing::ContainsRegex("\n +warp +2 +0-1\n"),
                               testing::ContainsRegex("\n +weft\\?\\[2J +2 +2-3\n")));
    ASSERT_EQ(warp.reclaim_cpu(2), heddle::Outcome::kNoted);
    ASSERT_EQ(warp.lend_cpu(0), heddle::Outcome::kSuccess);
    EXPECT_EQ(components(), json({"weft?[2J", "warp", "warp", "weft?[2J"}));
    daemon_.process().end();
    ASSERT_TRUE(daemon_.start());
    EXPECT_TRUE(becomes_true(
        [&] {
            return components() == json({"weft?[2J", "warp", "warp", "weft?[2J"});
        },
        10s))
        << "the next arbiter is shown the same: " << components();
    ASSERT_EQ(weft.detach(), heddle::Outcome::kSuccess);
    EXPECT_EQ(components(), json({nullptr, "warp", "warp", nullptr}));
}

TEST_F(StatusTool, WhatComponentsHaveDoneIsAskedWhenSomebodyLooks) {
    Program program(daemon_.path());
    ASSERT_TRUE(program.joined());
    Component warp(program.exchange(), "warp", {0, 1}), weft(program.exchange(), "weft", {});
    std::atomic<uint64_t> asked = 0;
    ASSERT_EQ(warp.on_count([&] { return WorkCounts{1000 + ++asked, 1000}; }), heddle::Outcome::kSuccess);
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(asked, 0U) << "nobody looked";
    const auto warp_of = [](const std::string& text) {
        const json status = json::parse(text);
        for (const json& component : status["clients"][0]["components"])
            if (component["name"] == "warp") return component;
        return json();
    };
    // A busy machine may be late once.
    EXPECT_TRUE(
        becomes_true([&] { return warp_of(output_of(tool("status --json")))["ended"] == 1000; }, 10s));
    const json shown = warp_of(output_of(tool("status --json")));
    EXPECT_EQ(shown["cpus"], json({0, 1}));
    EXPECT_GE(shown["inserted"], 1001U);
    EXPECT_THAT(output_of(tool("status")),
                testing::ContainsRegex("\n +warp +2 +0-1  1000 of 10[0-9]+ done\n"));
    EXPECT_THAT(output_of(tool("top --count 2")), testing::HasSubstr(" done, 0 a second\n"));
}

TEST_F(StatusTool, TopShowsWhatTheMemoryServerHasDone) {
    const TemporaryFolder folder;
    memory::Server server;
    memory::Client client(server);
    const std::vector<std::byte> content(100);
    const memory::DataId data = client.allocate_filled(content, client.create_segment(1000));
    const memory::CacheId cache = client.create_cache(4096);
    for (int i = 0; i < 3; ++i) client.release(client.get_const({data, {0, 100}}, cache));
    const std::string place = "HEDDLE_MEMORY=" + folder.path() + "/memory ";
    EXPECT_THAT(output_of(place + tool("top --count 1")), testing::Not(HasSubstr("memory of rank")));
    const memory::IpcServer door(server, folder.path() + "/memory");
    EXPECT_THAT(output_of(place + tool("top --count 2")),
                testing::AllOf(HasSubstr("memory of rank 0 of 1, pid"), HasSubstr("1 allocation(s)"),
                               HasSubstr("4.0 KiB, 3.9 KiB free; 3 gets, 0 a second; 2 hits, 1 misses, 0"),
                               HasSubstr("  shm of rank 0: 100 B read, 0 B a second; 100 B written, 0 B a")));
}

TEST_F(StatusTool, AForkedChildTouchesNoPageOfItsParents) {
    Program program(daemon_.path());
    ASSERT_TRUE(program.joined());
    Component warp(program.exchange(), "warp", {0, 1});
    const pid_t child = ::fork();
    if (child == 0) {
        (void)warp.lend();  // as a destructor of a static object may
        ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(json::parse(output_of(tool("status --json")))["cpus"][1]["component"], "warp");
}

/// More than waits for anybody else who does not read.
TEST_F(StatusTool, AStatusOfThousandsOfComponentsArrivesWhole) {
    std::vector<WireClient> clients;
    for (int i = 0; i < 200; ++i) {
        clients.push_back(client("crowd", 0));
        auto& page = *clients.back().page();
        for (size_t place = 0; place < HEDDLE_COMPONENTS; ++place) {
            page.component[place][0] = 0x6d6f6f6c;  // "loom"
            page.inserted[place] = 1;
        }
    }
    for (int times = 0; times < 3; ++times) {
        const ArbiterSnapshot status = Observer(daemon_.path()).status();
        ASSERT_EQ(status.clients.size(), 200U);
        ASSERT_EQ(status.components.size(), size_t{200} * HEDDLE_COMPONENTS);
    }
}

TEST_F(StatusTool, AFreeMachineHasNoClients) {
    const json status = json::parse(output_of(tool("status --json")));
    EXPECT_TRUE(status["clients"].empty());
    EXPECT_TRUE(status["cpus"][0]["client"].is_null());
    EXPECT_TRUE(status["cpus"][0]["component"].is_null());
    EXPECT_THAT(output_of(tool("status")), HasSubstr("4 CPUs, 4 free, 0 clients"));
}

TEST(StatusOfTheRealMachine, WhoSaysThatItLeftAndDidNotIsSeen) {
    if (const Machine machine = Machine::detect();
        machine.synthetic() || allowance(machine).usable.count() < 2)
        GTEST_SKIP() << "needs two real CPUs";
    Daemon daemon({"", {"--fence-after", "60000"}, {}});
    const auto status = [&](const char* words) {
        return output_of("HEDDLE_ARBITER=" + daemon.path() + " " HEDDLE_BUILD_DIR "/bin/heddle status " +
                         words);
    };
    const auto client = [&](const char* name) {
        const json shown = json::parse(status("--json"));
        for (const json& one : shown["clients"])
            if (one["name"] == name) return one;
        return json();
    };
    Child liar({HEDDLE_BUILD_DIR "/bin/unruly_client", daemon.path()});
    ASSERT_TRUE(becomes_true([&] { return !client("unruly").is_null(); }, 10s));
    EXPECT_EQ(client("unruly")["strays"], json::array());
    WireClient other(daemon.path());
    ASSERT_TRUE(other.join(hello_of("weaver", 1)));
    // The signal may come before the arbiter has asked: then it says that it left nothing.
    EXPECT_TRUE(becomes_true(
        [&] {
            liar.signal(SIGUSR1);
            return client("weaver")["granted"].size() == 1;
        },
        10s));
    const json taken = client("weaver")["granted"];
    EXPECT_TRUE(becomes_true([&] { return client("unruly")["strays"] == taken; }, 10s)) << client("unruly");
    EXPECT_EQ(client("weaver")["strays"], json::array());
    EXPECT_TRUE(becomes_true(
        [&] {
            return status("").find("  runs on " + std::to_string(taken[0].get<int>()) +
                                   " too, where others should\n") != std::string::npos;
        },
        10s))
        << status("");
}

TEST_F(StatusTool, TopWithoutATerminalPrintsSnapshots) {
    const WireClient a = client("weaver", 4);
    const std::string text = output_of(tool("top --count 1"));
    EXPECT_THAT(text, HasSubstr("0  A A A A"));
    EXPECT_THAT(text, HasSubstr("weaver"));
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << "no control sequences where there is no terminal";
}

TEST_F(StatusTool, ANameThatHoldsControlCharactersDisturbsNoTerminal) {
    const WireClient a = client("evil\x1b[2J\n", 1);
    EXPECT_THAT(output_of(tool("status")), HasSubstr("evil?[2J?"));
}

TEST_F(StatusTool, RecordsWhatACommandCausesAndKeepsItsExitCode) {
    const std::string file = daemon_.folder() + "/run.jsonl";
    EXPECT_THAT(output_of(tool("trace record --out " + file + " -- sh -c 'exit 3'; echo code $?")),
                HasSubstr("code 3"));
    // What ends the recorder is for the command.
    EXPECT_THAT(
        output_of(tool("trace record --out " + file + " -- sh -c 'trap \"exit 7\" TERM; echo ready > " +
                       file + ".ready; while :; do sleep 0.05; done' & until [ -s " + file +
                       ".ready ]; do sleep 0.02; done; kill $!; wait $!; echo code $?")),
        HasSubstr("code 7"));
    std::filesystem::remove(file);
    std::thread recording([&] { output_of(tool("trace record --out " + file + " --seconds 1")); });
    EXPECT_TRUE(becomes_true([&] { return std::ifstream(file).peek() != EOF; }, std::chrono::seconds(5)));
    { const WireClient a = client("weaver", 2); }
    recording.join();
    const trace::Trace trace = trace::read_file(file);
    int joined = 0, left = 0, moves = 0;
    for (const auto& event : trace.events) {
        joined += std::holds_alternative<trace::Joined>(event.what);
        left += std::holds_alternative<trace::Left>(event.what);
        moves += std::holds_alternative<trace::CpuChanged>(event.what);
    }
    EXPECT_EQ(trace.header.cpus.size(), 4U);
    EXPECT_EQ(joined, 1);
    EXPECT_EQ(left, 1);
    EXPECT_EQ(moves, 8) << "four CPUs given and given back";
}

TEST_F(StatusTool, ACommandThatFailsAfterTheArbiterHasGoneEndsTheRecorderAsItEnds) {
    const std::string pid =
        std::to_string(json::parse(output_of(tool("status --json")))["arbiter"]["pid"].get<int>());
    EXPECT_THAT(output_of(tool("trace record --out " + daemon_.folder() + "/run.jsonl -- sh -c 'kill " + pid +
                               "; sleep 0.3; exit 3' 2>/dev/null; echo code $?")),
                HasSubstr("code 3"));
}

TEST(RecordedTrace, TellsWhoWaitsAndWhoLends) {
    const Daemon daemon({"numa:1 core:4 pu:1", {"--policy", "owned"}, {}});
    const std::string heddle = "HEDDLE_ARBITER=" + daemon.path() + " " HEDDLE_BUILD_DIR "/bin/heddle ";
    const std::string file = daemon.folder() + "/run.jsonl";
    heddle_hello owner = hello_of("owner", 1);
    owner.owned.words[0] = 0b11;
    WireClient owning(daemon.path()), taking(daemon.path());
    ASSERT_TRUE(owning.join(owner));
    ASSERT_TRUE(taking.join(hello_of("taker", 6)));
    const auto sum = [&](const char* when) {
        output_of(heddle + "trace record --out " + file + " -- " + when);
        return json::parse(output_of(heddle + "trace summary --json " + file));
    };
    const auto waited_by_taker = [](const json& summary) {
        for (const json& client : summary["clients"])
            if (client["name"] == "taker") return client["waited_s"].get<double>();
        return -1.0;
    };
    const json present = sum("sleep 0.2");
    EXPECT_GT(present["lent_s"].get<double>(), 0.15) << present;
    EXPECT_GT(waited_by_taker(present), 0.45) << "for three CPUs: " << present;
    taking.close();
    std::filesystem::remove(file);
    std::thread comes([&] {
        ASSERT_TRUE(becomes_true([&] { return std::ifstream(file).peek() != EOF; }));
        WireClient one(daemon.path());
        heddle_hello most = hello_of("taker", 6);
        most.max_cpus = 3;
        ASSERT_TRUE(one.join(most));
        std::ofstream(file + ".came");
        std::this_thread::sleep_for(300ms);
    });
    const json later =
        sum(("sh -c 'until [ -e " + file + ".came ]; do sleep 0.01; done; sleep 0.2'").c_str());
    comes.join();
    EXPECT_GT(later["lent_s"].get<double>(), 0.15) << later;
    EXPECT_LT(waited_by_taker(later), 0.05) << "it wants no more than three: " << later;
}

// The status inside the recorded time, the trace, and the status around it hold each other's accounts.
TEST_F(StatusTool, AccountsOfStatusAndTraceAgree) {
    const WireClient a = client("weaver", 4);
    const auto used = [](const json& status) { return status["core_seconds"]["used"].get<double>(); };
    const std::string status = tool("status --json");
    const std::string folder = daemon_.folder();
    const json before = json::parse(output_of(status));
    output_of("export F=" + folder + "; " + tool("trace record --out $F/run.jsonl -- sh -c \"") + status +
              " >$F/a; sleep 0.3; " + status + " >$F/b\"");
    const json after = json::parse(output_of(status));
    const json inner_before = json::parse(std::ifstream(folder + "/a"));
    const json inner_after = json::parse(std::ifstream(folder + "/b"));
    const json sum = json::parse(output_of(tool("trace summary --json " + folder + "/run.jsonl")));
    EXPECT_GE(sum["used_s"].get<double>(), used(inner_after) - used(inner_before));
    EXPECT_LE(sum["used_s"].get<double>(), used(after) - used(before));
    EXPECT_EQ(sum["clients"][0]["pid"], after["clients"][0]["pid"]);
}

TEST(Record, StartsTheArbiterBeforeTheCommand) {
    const TemporaryFolder folder;
    const std::string heddle =
        "env -u HEDDLE_ARBITER XDG_RUNTIME_DIR=" + folder.path() + " " HEDDLE_BUILD_DIR "/bin/heddle ";
    const std::string record = heddle + "trace record -o " + folder.path() + "/run.jsonl -- ";
    EXPECT_EQ(output_of(record + heddle + "run --require -- echo woven"), "woven\n");
    const json sum = json::parse(output_of(heddle + "trace summary --json " + folder.path() + "/run.jsonl"));
    EXPECT_EQ(sum["clients"].size(), 1U);
    const json status = json::parse(output_of(heddle + "status --json"));
    EXPECT_EQ(::kill(status["arbiter"]["pid"].get<pid_t>(), SIGTERM), 0);
}

TEST_F(StatusTool, ARecordThatIsEmptySaysWhatPutsAProgramUnderHeddle) {
    const std::string record = tool("trace record --out " + daemon_.folder() + "/run.jsonl -- ");
    EXPECT_THAT(output_of(record + "echo woven 2>&1"),
                testing::StartsWith("woven\nheddle: nothing was under heddle meanwhile"));
    EXPECT_EQ(output_of(record + "env " + tool("run -- echo woven 2>&1")), "woven\n");
}

TEST(Record, ACommandsOwnHelpIsTheCommands) {
    const TemporaryFolder folder;
    const std::string heddle =
        "env -u HEDDLE_ARBITER XDG_RUNTIME_DIR=" + folder.path() + " " HEDDLE_BUILD_DIR "/bin/heddle ";
    const std::string record = heddle + "trace record -o " + folder.path() + "/run.jsonl -- ";
    EXPECT_THAT(output_of(record + "printf '%s;' '[a-z]' '[]' '[a,b]' -- x"),
                testing::StartsWith("[a-z];[];[a,b];--;x;heddle: nothing"));
    EXPECT_THAT(output_of(record + "echo -h --help"), testing::StartsWith("-h --help\nheddle: nothing"));
    const json status = json::parse(output_of(heddle + "status --json"));
    EXPECT_EQ(::kill(status["arbiter"]["pid"].get<pid_t>(), SIGTERM), 0);
}

}  // namespace
}  // namespace heddle::test
