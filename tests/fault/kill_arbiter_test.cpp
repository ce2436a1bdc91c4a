// The arbiter killed under load and started again on the same socket, 500 times over both campaigns: programs
// go on and register again with what they hold, and within a second every CPU has its one holder.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <random>
#include <thread>

#include "support/daemon.hpp"
#include "support/grant_history.hpp"
#include "support/progress.hpp"
#include "support/sanitized.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

/// Until everything is as it should be again.
constexpr auto kSoon = kSanitized ? 10s : 1s;

/// A program with its own record of progress.
struct Program {
    Child process;
    Progress* progress;
};

class KillArbiter : public testing::Test {
  protected:
    std::string progress_file(size_t number) {
        return daemon_->folder() + "/progress" + std::to_string(number);
    }
    void start_client(const char* program = "fault_client") {
        const std::string file = progress_file(programs_.size());
        programs_.push_back({Child({HEDDLE_BUILD_DIR "/bin/" + std::string(program), daemon_->path(),
                                    std::to_string(programs_.size()), file}),
                             map_progress(file.c_str())});
    }
    void start_openmp() {
        const std::string file = progress_file(programs_.size());
        programs_.push_back(
            {Child({kHeddle, "run", "--require", "--", HEDDLE_BUILD_DIR "/bin/openmp_program", file},
                   {"HEDDLE_ARBITER=" + daemon_->path()}),
             map_progress(file.c_str())});
    }

    void kill_and_restart() {
        daemon_->process().end();
        ASSERT_TRUE(daemon_->start()) << daemon_->said();
    }
    /// All are registered, and no CPU is idle or on its way.
    [[nodiscard]] bool settled() {
        const ArbiterSnapshot status = Observer(daemon_->path()).status();
        return std::ranges::none_of(status.clients, [](const auto& client) { return client.away; }) &&
               status.clients.size() == programs_.size() &&
               std::ranges::all_of(status.cpus,
                                   [](const auto& cpu) { return cpu.client != 0 && !cpu.leaving; });
    }
    /// Kills at random moments; every tenth time everything has to settle first.
    void campaign(int kills) {
        std::mt19937 random(7);
        ASSERT_TRUE(becomes_true([&] { return settled(); }, 5s));
        for (int i = 0; i < kills && !HasFatalFailure(); ++i) {
            ::usleep(static_cast<useconds_t>(random() % 40'000));
            std::vector<uint64_t> rounds;
            for (const Program& program : programs_) rounds.push_back(program.progress->rounds);
            kill_and_restart();
            for (size_t k = 0; k < programs_.size(); ++k) {
                EXPECT_TRUE(becomes_true([&] { return programs_[k].progress->rounds > rounds[k]; }, kSoon))
                    << "program " << k << " stands still after kill " << i;
                ASSERT_TRUE(programs_[k].process.running()) << "program " << k << " ended";
            }
            if (i % 10 != 9) continue;
            GrantHistory history(daemon_->path());
            EXPECT_TRUE(becomes_true([&] { return settled(); }, kSoon)) << describe() << " after kill " << i;
            EXPECT_EQ(history.broken(), "");
        }
    }
    std::string describe() {
        std::string text;
        const ArbiterSnapshot status = Observer(daemon_->path()).status();
        for (const auto& cpu : status.cpus)
            text +=
                " " + std::to_string(cpu.cpu) + ":" + std::to_string(cpu.client) + (cpu.leaving ? "!" : "");
        return text + " with " + std::to_string(status.clients.size()) + " of " +
               std::to_string(programs_.size());
    }

    /// Where a process's first thread may run, by the kernel.
    static CpuSet bound(const Program& program) {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        ::sched_getaffinity(program.process.pid(), sizeof cpus, &cpus);
        return CpuSet::from_native(&cpus, sizeof cpus);
    }
    /// Each thread with the CPUs that it may run on.
    static std::string threads_of(const Program& program) {
        std::string text;
        const std::string folder = "/proc/" + std::to_string(program.process.pid()) + "/task";
        for (const auto& thread : std::filesystem::directory_iterator(folder)) {
            cpu_set_t cpus;
            CPU_ZERO(&cpus);
            const std::string name = thread.path().filename();
            ::sched_getaffinity(std::stoi(name), sizeof cpus, &cpus);
            text += name + " {" + CpuSet::from_native(&cpus, sizeof cpus).to_list() + "} ";
        }
        return text;
    }
    CpuSet granted(const Program& program) {
        for (const auto& client : Observer(daemon_->path()).status().clients)
            if (client.pid == static_cast<uint32_t>(program.process.pid())) return client.granted;
        return {};
    }
    void stop_openmp() {
        for (Program& program : programs_) {
            program.progress->stop = 1;
            EXPECT_TRUE(program.process.ends_within(5s));
            EXPECT_EQ(program.process.reap(), 0);
        }
    }

    std::optional<Daemon> daemon_;
    std::deque<Program> programs_;
};

TEST_F(KillArbiter, ClientsComeBackWithWhatTheyHold) {
    daemon_.emplace(Daemon::Options{"core:8 pu:1", {}, {}});
    for (int i = 0; i < 4; ++i) start_client();
    campaign(400);
    for (const Program& program : programs_) EXPECT_GT(program.progress->registrations, 40U);
}

TEST_F(KillArbiter, ClientsThatHandOverComeBack) {
    daemon_.emplace(Daemon::Options{"core:8 pu:1", {}, {}});
    for (int i = 0; i < 4; ++i) start_client("handover_client");
    campaign(100);
}

TEST_F(KillArbiter, OpenMpProgramsNeverStop) {
    if (::access(HEDDLE_BUILD_DIR "/bin/openmp_program", X_OK) != 0)
        GTEST_SKIP() << "no OpenMP in this build";
    daemon_.emplace(Daemon::Options{});
    start_openmp();
    start_openmp();
    campaign(100);
    for (const Program& program : programs_)
        EXPECT_TRUE(becomes_true([&] { return bound(program) == granted(program); }, 1s))
            << "bound to " << bound(program).to_list() << ", granted " << granted(program).to_list()
            << "; its threads: " << threads_of(program) << describe();
    stop_openmp();
}

/// Another one had its place meanwhile, of which nothing tells when it is free.
TEST_F(KillArbiter, AProgramThatIsRefusedWhenItComesBackAsksAgain) {
    if (::access(HEDDLE_BUILD_DIR "/bin/openmp_program", X_OK) != 0)
        GTEST_SKIP() << "no OpenMP in this build";
    daemon_.emplace(Daemon::Options{"", {"--clients-per-user", "1"}, {}});
    start_openmp();
    const Program& program = programs_.front();
    ASSERT_TRUE(becomes_true([&] { return !granted(program).empty(); }, 5s));
    program.process.signal(SIGSTOP);
    daemon_->process().end();
    std::filesystem::remove(daemon_->path() + ".state");
    ASSERT_TRUE(daemon_->start()) << daemon_->said();
    std::optional<WireClient> holder(std::in_place, daemon_->path());
    ASSERT_TRUE(holder->join(hello_of("holder", 1)));
    program.process.signal(SIGCONT);
    std::this_thread::sleep_for(500ms);
    EXPECT_TRUE(granted(program).empty());
    holder.reset();
    EXPECT_TRUE(becomes_true([&] { return !granted(program).empty(); }, 3s));
    stop_openmp();
}

TEST_F(KillArbiter, KeepsTheCpusOfALivingProgramThatIsLongInComingBack) {
    daemon_.emplace(Daemon::Options{"core:8 pu:1", {}, {}});
    WireClient first(daemon_->path());
    auto hello = hello_of("slow", 4);
    hello.max_cpus = 4;
    ASSERT_TRUE(first.join(hello));
    ASSERT_TRUE(becomes_true([&] { return first.grant().count == 4; }, 2s));
    const heddle_mask held = first.grant().mask;
    kill_and_restart();
    WireClient taker(daemon_->path());
    ASSERT_TRUE(taker.join(hello_of("taker", 8)));
    std::this_thread::sleep_for(1s);
    EXPECT_EQ(taker.grant().count, 4U);
    EXPECT_EQ(taker.grant().mask.words[0] & held.words[0], 0U) << "they are the slow one's";
    const auto status = Observer(daemon_->path()).status();
    EXPECT_TRUE(
        std::ranges::any_of(status.clients, [](const auto& c) { return c.away && c.name == "slow"; }));

    hello.held = held;
    WireClient back(daemon_->path());
    ASSERT_TRUE(back.join(hello));
    EXPECT_TRUE(becomes_true([&] { return back.grant().mask.words[0] == held.words[0]; }, 1s));
    EXPECT_EQ(Observer(daemon_->path()).status().clients.size(), 2U);
}

/// It may be on what was asked back from it, which is all that it had, and the next arbiter dies, too.
TEST_F(KillArbiter, KnowsOneThatWasAskedForAllAfterAnotherDeath) {
    daemon_.emplace(Daemon::Options{"core:1 pu:1", {}, {}});
    WireClient first(daemon_->path());
    ASSERT_TRUE(first.join(hello_of("slow", 0)));
    ASSERT_TRUE(becomes_true([&] { return first.grant().count == 1; }, 2s));
    WireClient taker(daemon_->path());
    ASSERT_TRUE(taker.join(hello_of("taker", 1)));
    ASSERT_TRUE(becomes_true([&] { return first.grant().count == 0; }, 2s));
    for (int death = 1; death <= 3; ++death) {
        kill_and_restart();
        const auto clients = Observer(daemon_->path()).status().clients;
        EXPECT_EQ(std::ranges::count_if(
                      clients, [](const auto& c) { return c.away && c.name == "slow" && c.granted.empty(); }),
                  1)
            << "after death " << death;
    }
    WireClient back(daemon_->path());
    ASSERT_TRUE(back.join(hello_of("slow", 0)));
    const auto clients = Observer(daemon_->path()).status().clients;
    EXPECT_EQ(std::ranges::count_if(clients, [](const auto& c) { return c.name == "slow"; }), 1);
}

TEST_F(KillArbiter, WaitsForNoProgramThatDiedOrStaysAwayTooLong) {
    daemon_.emplace(Daemon::Options{"core:8 pu:1", {"--away", "0.5"}, {}});
    Child dies({HEDDLE_BUILD_DIR "/bin/fault_client", daemon_->path(), "1", progress_file(0)});
    WireClient stays_away(daemon_->path());
    ASSERT_TRUE(stays_away.join(hello_of("stays away", 4)));
    const auto both_hold = [&] {
        const auto clients = Observer(daemon_->path()).status().clients;
        return clients.size() == 2 && !clients[0].granted.empty() && !clients[1].granted.empty();
    };
    const auto stopped_with_cpus = [&] {
        dies.signal(SIGCONT);
        ::usleep(2000);
        dies.signal(SIGSTOP);
        ::usleep(2000);
        return both_hold();
    };
    ASSERT_TRUE(becomes_true(stopped_with_cpus, 2s));
    kill_and_restart();
    EXPECT_EQ(Observer(daemon_->path()).status().clients.size(), 2U);
    dies.end();
    EXPECT_TRUE(becomes_true([&] { return Observer(daemon_->path()).status().clients.size() == 1; }, 100ms));
    WireClient taker(daemon_->path());
    ASSERT_TRUE(taker.join(hello_of("taker", 8)));
    EXPECT_TRUE(becomes_true([&] { return taker.grant().count == 8; }, 2s));
    EXPECT_EQ(Observer(daemon_->path()).status().clients.size(), 1U);
}

TEST_F(KillArbiter, AProgramThatComesBackObeysItsNewGrant) {
    if (::access(HEDDLE_BUILD_DIR "/bin/openmp_program", X_OK) != 0)
        GTEST_SKIP() << "no OpenMP in this build";
    daemon_.emplace(Daemon::Options{});
    start_openmp();
    const Program& first = programs_.front();
    ASSERT_TRUE(becomes_true([&] { return granted(first).count() > 0 && first.progress->rounds > 0; }, 5s));
    const CpuSet all = granted(first);
    if (all.count() < 2) GTEST_SKIP() << "one CPU cannot be divided";

    first.process.signal(SIGSTOP);
    kill_and_restart();
    auto hello = hello_of("taker", 1);
    hello.max_cpus = 1;
    WireClient taker(daemon_->path());
    ASSERT_TRUE(taker.join(hello));
    first.process.signal(SIGCONT);
    EXPECT_TRUE(becomes_true([&] { return granted(first).count() == all.count() - 1; }, 1s));
    EXPECT_TRUE(becomes_true([&] { return bound(first) == granted(first); }, 1s))
        << "it runs on " << bound(first).to_list() << " and was given " << granted(first).to_list();
    stop_openmp();
}

}  // namespace
}  // namespace heddle::test
