// A kill at each named point (base/failpoint.h), at its first, second and third passage. A point that is
// never passed fails its test: it would prove nothing.
#include "base/failpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "support/daemon.hpp"
#include "support/grant_history.hpp"
#include "support/progress.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

#define HEDDLE_FAILPOINT_NAME(name) #name,
constexpr const char* kStartPoints[] = {HEDDLE_START_FAILPOINTS(HEDDLE_FAILPOINT_NAME)};
constexpr const char* kEndPoints[] = {HEDDLE_END_FAILPOINTS(HEDDLE_FAILPOINT_NAME)};
constexpr const char* kClientPoints[] = {HEDDLE_CLIENT_FAILPOINTS(HEDDLE_FAILPOINT_NAME)};
constexpr const char* kArbiterPoints[] = {HEDDLE_ARBITER_FAILPOINTS(HEDDLE_FAILPOINT_NAME)};
constexpr const char* kLaunchPoints[] = {HEDDLE_LAUNCH_FAILPOINTS(HEDDLE_FAILPOINT_NAME)};

std::string variable(const char* point, int passage) {
    return std::string("TEST_FAILPOINT=") + point + ":" + std::to_string(passage);
}
bool killed(int status) {
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/// All that an arbiter is asked for, once. It may die at any moment of this.
void ask_everything(const std::string& path) {
    try {
        const GrantHistory history(path);
        WireClient holder(path);
        (void)holder.join(hello_of("never leaves", 8), 200);
        WireClient taker(path);
        if (!taker.join(hello_of("taker", 8), 200)) return;
        taker.show_demand(3);
        taker.send(message_of<heddle_header>(HEDDLE_DEMAND));
        auto limits = message_of<heddle_limits>(HEDDLE_LIMITS);
        limits.weight = 2;
        taker.send(limits);
        taker.send_left(2);
        WireClient nonsense(path);
        nonsense.send_bytes("?", 1);
        (void)Observer(path).status();
        ::usleep(15'000);  // long enough for a fence
    } catch (const Error&) {
        return;
    }
}

/// Two programs in plain protocol, and three that hand CPUs to each other.
std::vector<Child> start_clients(const Daemon& daemon) {
    std::vector<Child> clients;
    for (int i = 0; i < 5; ++i)
        clients.emplace_back(std::vector<std::string>{
            HEDDLE_BUILD_DIR + std::string(i < 2 ? "/bin/fault_client" : "/bin/handover_client"),
            daemon.path(), std::to_string(i), daemon.folder() + "/progress" + std::to_string(i)});
    return clients;
}
/// Within 10 s, for a busy machine, so many programs are registered with this arbiter, and every CPU was seen
/// to be one's and not on its way. Not all at one moment: the programs never rest.
testing::AssertionResult settles(const Daemon& daemon, size_t programs, int cpus = 8) {
    CpuSet served;
    std::string present;
    const auto settled = [&] {
        const ArbiterSnapshot status = Observer(daemon.path()).status();
        for (const auto& cpu : status.cpus)
            if (cpu.client != 0 && !cpu.leaving) served.insert(cpu.cpu);
        present.clear();
        size_t registered = 0;
        for (const auto& client : status.clients) {
            // This very process, which asked the arbiter before, lives as well, and will not come back.
            if (client.away && client.pid == static_cast<uint32_t>(::getpid())) continue;
            registered += client.away ? 0 : 1;
            present +=
                " " + client.name + (client.away ? " (away)" : "") + " with " + client.granted.to_list();
        }
        const bool away = present.find("(away)") != std::string::npos;
        return !away && registered == programs && served.count() == cpus;
    };
    if (becomes_true(settled, 10s)) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "served: " << served.to_list() << "; there:" << present;
}

class ArbiterFailpoint : public testing::TestWithParam<const char*> {};

TEST_P(ArbiterFailpoint, LosesNoClientAndNoCpu) {
    // Whom it waits for in vain is not to be forgotten in time for settles().
    Daemon daemon({"core:8 pu:1", {"--away", "60"}, {}});
    const std::vector<Child> clients = start_clients(daemon);
    ASSERT_TRUE(settles(daemon, clients.size()));
    for (int passage = 1; passage <= 3; ++passage) {
        daemon.process().end();
        daemon.set_variables({variable(GetParam(), passage)});
        ASSERT_TRUE(daemon.start());
        const auto end = std::chrono::steady_clock::now() + 60s;
        for (int tries = 1; daemon.process().running() && std::chrono::steady_clock::now() < end; ++tries) {
            ask_everything(daemon.path());
            // A point of the restart is passed once for each program that held CPUs, which may be too few.
            // The others take some time, and a start counts from 0 again.
            if (tries % 20 != 0 || !std::has_single_bit(static_cast<unsigned>(tries / 20))) continue;
            daemon.process().end();
            (void)daemon.start();
        }
        ASSERT_FALSE(daemon.process().running()) << "the point was not passed " << passage << " times";
        EXPECT_TRUE(killed(daemon.process().reap())) << daemon.said();

        daemon.set_variables({});
        ASSERT_TRUE(daemon.start());
        EXPECT_TRUE(settles(daemon, clients.size())) << "after passage " << passage;
        for (const Child& client : clients) EXPECT_TRUE(client.running());
    }
}

INSTANTIATE_TEST_SUITE_P(Points, ArbiterFailpoint, testing::ValuesIn(kArbiterPoints),
                         [](const auto& point) { return std::string(point.param); });

class StartFailpoint : public testing::TestWithParam<const char*> {};

TEST_P(StartFailpoint, TheNextArbiterStartsAllTheSame) {
    Daemon daemon({"core:8 pu:1", {}, {}});
    const std::vector<Child> clients = start_clients(daemon);
    EXPECT_TRUE(settles(daemon, clients.size()));
    for (int round = 0; round < 3; ++round) {
        daemon.process().end();
        daemon.set_variables({variable(GetParam(), 1)});
        EXPECT_FALSE(daemon.start()) << "the point was not passed";
        ASSERT_TRUE(daemon.process().ends_within(2s));
        EXPECT_TRUE(killed(daemon.process().reap())) << daemon.said();
        daemon.set_variables({});
        ASSERT_TRUE(daemon.start());
        EXPECT_TRUE(settles(daemon, clients.size()));
    }
}

INSTANTIATE_TEST_SUITE_P(Points, StartFailpoint, testing::ValuesIn(kStartPoints),
                         [](const auto& point) { return std::string(point.param); });

class EndFailpoint : public testing::TestWithParam<const char*> {};

TEST_P(EndFailpoint, TheNextArbiterStartsAllTheSame) {
    Daemon daemon({"core:8 pu:1", {}, {variable(GetParam(), 1)}});
    const std::vector<Child> clients = start_clients(daemon);
    EXPECT_TRUE(settles(daemon, clients.size()));
    for (int round = 0; round < 3; ++round) {
        daemon.process().signal(SIGTERM);
        ASSERT_TRUE(daemon.process().ends_within(2s));
        EXPECT_TRUE(killed(daemon.process().reap())) << "the point was not passed";
        ASSERT_TRUE(daemon.start());
        EXPECT_TRUE(settles(daemon, clients.size()));
    }
}

INSTANTIATE_TEST_SUITE_P(Points, EndFailpoint, testing::ValuesIn(kEndPoints),
                         [](const auto& point) { return std::string(point.param); });

class ClientFailpoint : public testing::TestWithParam<const char*> {};

TEST_P(ClientFailpoint, TheOthersGetItsCpusAndGoOn) {
    for (int passage = 1; passage <= 3; ++passage) {
        Daemon daemon({"core:8 pu:1", {}, {}});
        const std::string file = daemon.folder() + "/progress";
        const auto start = [&](int seed, const std::vector<std::string>& variables) {
            return Child({HEDDLE_BUILD_DIR "/bin/handover_client", daemon.path(), std::to_string(seed),
                          file + std::to_string(seed)},
                         variables);
        };
        const Child survivor = start(1, {});
        const Progress* progress = map_progress((file + "1").c_str());
        Child victim = start(2, {variable(GetParam(), passage)});
        const auto end = std::chrono::steady_clock::now() + 10s;
        for (int i = 1; victim.running() && std::chrono::steady_clock::now() < end; ++i) {
            {
                // So that there are peers to be forgotten.
                Child passer_by = start(3, {});
                (void)victim.ends_within(30ms);
            }
            if (i % 4 != 0 || !victim.running()) continue;
            daemon.process().end();
            ASSERT_TRUE(daemon.start());
        }
        ASSERT_FALSE(victim.running()) << "the point was not passed " << passage << " times";
        EXPECT_TRUE(killed(victim.reap()));
        EXPECT_TRUE(settles(daemon, 1)) << "after passage " << passage;
        const uint64_t rounds = progress->rounds;
        EXPECT_TRUE(becomes_true([&] { return progress->rounds > rounds + 10; }, 1s));
        EXPECT_TRUE(survivor.running());
    }
}

INSTANTIATE_TEST_SUITE_P(Points, ClientFailpoint, testing::ValuesIn(kClientPoints),
                         [](const auto& point) { return std::string(point.param); });

class LaunchFailpoint : public testing::TestWithParam<const char*> {};

TEST_P(LaunchFailpoint, LeavesNothingBehind) {
    const std::string program = HEDDLE_BUILD_DIR "/bin/openmp_program";
    if (::access(program.c_str(), X_OK) != 0) GTEST_SKIP() << "no OpenMP in this build";
    for (int passage = 1; passage <= 3; ++passage) {
        Daemon daemon({});
        const std::string file = daemon.folder() + "/progress";
        Progress* progress = map_progress(file.c_str());
        Child victim({kHeddle, "run", "--require", "--", program, file},
                     {"HEDDLE_ARBITER=" + daemon.path(), variable(GetParam(), passage)});
        EXPECT_TRUE(becomes_true([&] { return progress->rounds > 0 || !victim.running(); }, 5s));
        const auto end = std::chrono::steady_clock::now() + 10s;
        for (int i = 0; victim.running() && std::chrono::steady_clock::now() < end; ++i) {
            {
                WireClient other(daemon.path());
                EXPECT_TRUE(other.join(hello_of("comes and goes", 2)));
                // An arbiter that just started gives nothing for a moment.
                (void)becomes_true([&] { return other.grant().count > 0 || !victim.running(); }, 1s);
            }
            ::usleep(5'000);
            if (i % 4 != 3) continue;
            // It has seen that the other one went: else the next arbiter keeps its place for this process.
            (void)becomes_true(
                [&] { return Observer(daemon.path()).status().clients.size() <= 1 || !victim.running(); },
                1s);
            daemon.process().end();
            ASSERT_TRUE(daemon.start());
            ::usleep(20'000);
        }
        ASSERT_FALSE(victim.running()) << "the point was not passed " << passage << " times";
        EXPECT_TRUE(killed(victim.reap()));
        const auto free = [&] {
            const ArbiterSnapshot status = Observer(daemon.path()).status();
            return status.clients.empty() &&
                   std::ranges::all_of(status.cpus, [](const auto& cpu) { return cpu.client == 0; });
        };
        EXPECT_TRUE(becomes_true(free, 1s)) << "after passage " << passage;
    }
}

TEST(ArbiterKilledHalfWay, ATornGrantHoldsUpNoProgram) {
    const std::string program = HEDDLE_BUILD_DIR "/bin/openmp_program";
    if (::access(program.c_str(), X_OK) != 0) GTEST_SKIP() << "no OpenMP in this build";
    // The first grant goes out with the welcome, the second when another program comes.
    Daemon daemon({"", {}, {variable("publish_is_half_done", 2)}});
    const std::string file = daemon.folder() + "/progress";
    Progress* progress = map_progress(file.c_str());
    Child runs({kHeddle, "run", "--require", "--", program, file}, {"HEDDLE_ARBITER=" + daemon.path()});
    ASSERT_TRUE(becomes_true([&] { return progress->rounds > 0; }, 5s));
    WireClient other(daemon.path());
    (void)other.join(hello_of("other", 2), 200);
    ASSERT_TRUE(daemon.process().ends_within(5s));
    daemon.process().reap();

    const uint64_t rounds = progress->rounds;
    EXPECT_TRUE(becomes_true([&] { return progress->rounds > rounds; }, 1s));
    daemon.set_variables({});
    ASSERT_TRUE(daemon.start());
    const auto is_back = [&] {
        const auto clients = Observer(daemon.path()).status().clients;
        return std::ranges::count_if(clients, [](const auto& client) { return !client.away; }) == 1;
    };
    EXPECT_TRUE(becomes_true(is_back, 2s)) << "it never came back";
    progress->stop = 1;
    EXPECT_TRUE(runs.ends_within(5s));
    EXPECT_EQ(runs.reap(), 0);
}

INSTANTIATE_TEST_SUITE_P(Points, LaunchFailpoint, testing::ValuesIn(kLaunchPoints),
                         [](const auto& point) { return std::string(point.param); });

}  // namespace
}  // namespace heddle::test
