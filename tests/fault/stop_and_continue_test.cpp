// SIGSTOP and SIGCONT, 500 times for 1 ms to 5 s, of clients and of the arbiter: a stopped holder is fenced,
// so that nobody waits for it; a stopped arbiter holds up no program; and the books are right throughout.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <random>
#include <thread>

#include "support/daemon.hpp"
#include "support/grant_history.hpp"
#include "support/progress.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

class StopAndContinue : public testing::Test {
  protected:
    void start(int clients) {
        for (int i = 0; i < clients; ++i) {
            const std::string file = daemon_.folder() + "/progress" + std::to_string(i);
            clients_.emplace_back(std::vector<std::string>{HEDDLE_BUILD_DIR "/bin/fault_client",
                                                           daemon_.path(), std::to_string(i), file});
            progress_.push_back(map_progress(file.c_str()));
        }
        ASSERT_TRUE(becomes_true(
            [&] { return Observer(daemon_.path()).status().clients.size() == clients_.size(); }, 5s));
    }
    [[nodiscard]] bool all_go_on(size_t but) {
        std::vector<uint64_t> rounds;
        for (const Progress* progress : progress_) rounds.push_back(progress->rounds);
        return becomes_true(
            [&] {
                for (size_t i = 0; i < progress_.size(); ++i)
                    if (i != but && progress_[i]->rounds == rounds[i]) return false;
                return true;
            },
            1s);
    }

    /// How long the i-th stop lasts: 1 to 20 ms, each fiftieth 1 to 5 s. All others go on throughout.
    void stay_stopped(int i, size_t victim) {
        const bool is_long = i % 50 == 49;
        const auto more = static_cast<int>(random_() % 1000);
        const auto end = std::chrono::steady_clock::now() + (is_long ? 1s + more * 4ms : 1ms + more * 19us);
        do {
            EXPECT_TRUE(all_go_on(victim)) << "stop " << i;
            std::this_thread::sleep_until(std::min(end, std::chrono::steady_clock::now() + 100ms));
        } while (std::chrono::steady_clock::now() < end);
        EXPECT_TRUE(all_go_on(victim)) << "stop " << i;
    }

    Daemon daemon_{{"core:8 pu:1", {}, {}}};
    std::deque<Child> clients_;
    std::vector<Progress*> progress_;
    std::mt19937 random_{11};
};

TEST_F(StopAndContinue, OfClientsStallsNoOther) {
    start(5);
    GrantHistory history(daemon_.path());
    for (int i = 0; i < 350; ++i) {
        const size_t victim = random_() % clients_.size();
        clients_[victim].signal(SIGSTOP);
        stay_stopped(i, victim);
        clients_[victim].signal(SIGCONT);
    }
    EXPECT_EQ(history.broken(), "");
    EXPECT_FALSE(history.lost());
    EXPECT_TRUE(all_go_on(clients_.size()));
}

TEST_F(StopAndContinue, OfTheArbiterStopsNobody) {
    start(4);
    for (int i = 0; i < 150; ++i) {
        daemon_.process().signal(SIGSTOP);
        stay_stopped(i, clients_.size());
        daemon_.process().signal(SIGCONT);
        ::usleep(static_cast<useconds_t>(random_() % 10'000));
    }
    GrantHistory history(daemon_.path());
    EXPECT_TRUE(becomes_true([&] { return history.moves() > 20; }, 2s)) << "nothing moves any more";
    EXPECT_EQ(history.broken(), "");
    EXPECT_EQ(Observer(daemon_.path()).status().clients.size(), clients_.size());
}

TEST_F(StopAndContinue, AStoppedHolderIsFenced) {
    WireClient holder(daemon_.path());
    ASSERT_TRUE(holder.join(hello_of("holder", 8)));
    ASSERT_EQ(holder.grant().count, 8U);
    WireClient taker(daemon_.path());
    ASSERT_TRUE(taker.join(hello_of("taker", 8)));
    // The holder never says that it left. 10 ms is the arbiter's deadline; the rest is the machine's noise.
    EXPECT_TRUE(becomes_true([&] { return taker.grant().count == 4; }, 1s));
    EXPECT_EQ(holder.grant().count, 4U);
    EXPECT_TRUE(holder.send_left(holder.grant().epoch)) << "it stays a client, and may say so late";
    WireMessage message;
    EXPECT_NE(holder.receive(message, 20), WireClient::Got::kClosed);
}

TEST(StoppedProgram, LeavesTheCpusItLost) {
    const std::string program = HEDDLE_BUILD_DIR "/bin/openmp_program";
    if (::access(program.c_str(), X_OK) != 0) GTEST_SKIP() << "no OpenMP in this build";
    Daemon daemon({});
    const std::string file = daemon.folder() + "/progress";
    Progress* progress = map_progress(file.c_str());
    Child stopped({kHeddle, "run", "--require", "--", program, file}, {"HEDDLE_ARBITER=" + daemon.path()});
    ASSERT_TRUE(becomes_true([&] { return progress->rounds > 0; }, 5s));
    const auto all = Observer(daemon.path()).status().cpus.size();
    if (all < 2) GTEST_SKIP() << "one CPU cannot be divided";
    stopped.signal(SIGSTOP);
    auto hello = hello_of("taker", 1);
    hello.max_cpus = 1;
    WireClient taker(daemon.path());
    ASSERT_TRUE(taker.join(hello));
    EXPECT_TRUE(becomes_true([&] { return taker.grant().count == 1; }, 1s));
    cpu_set_t bound;
    CPU_ZERO(&bound);
    ASSERT_EQ(::sched_getaffinity(stopped.pid(), sizeof bound, &bound), 0);
    EXPECT_FALSE(cpus_of(taker.grant().mask).intersects(CpuSet::from_native(&bound, sizeof bound)))
        << "it would wake up on the taker's CPU";
    stopped.signal(SIGCONT);
    progress->stop = 1;
    EXPECT_TRUE(stopped.ends_within(5s));
    EXPECT_EQ(stopped.reap(), 0);
}

TEST(StoppedProgram, GivesItsShareToOthersUntilItGoesOn) {
    const std::string program = HEDDLE_BUILD_DIR "/bin/openmp_program";
    if (::access(program.c_str(), X_OK) != 0) GTEST_SKIP() << "no OpenMP in this build";
    Daemon daemon({});
    const auto all = static_cast<uint32_t>(Observer(daemon.path()).status().cpus.size());
    if (all < 2) GTEST_SKIP() << "one CPU cannot be divided";
    WireClient other(daemon.path());
    ASSERT_TRUE(other.join(hello_of("other", all)));
    const std::string file = daemon.folder() + "/progress";
    Progress* progress = map_progress(file.c_str());
    Child stopped({kHeddle, "run", "--require", "--", program, file}, {"HEDDLE_ARBITER=" + daemon.path()});
    ASSERT_TRUE(becomes_true([&] { return progress->rounds > 0; }, 5s));
    ASSERT_TRUE(
        becomes_true([&] { return other.send_left(other.grant().epoch) && other.grant().count < all; }, 5s));
    stopped.signal(SIGSTOP);
    EXPECT_TRUE(becomes_true([&] { return other.grant().count == all; }, 5s)) << other.grant().count;
    stopped.signal(SIGCONT);
    EXPECT_TRUE(
        becomes_true([&] { return other.send_left(other.grant().epoch) && other.grant().count < all; }, 5s))
        << "it has its share again";
    progress->stop = 1;
    EXPECT_TRUE(stopped.ends_within(5s));
    EXPECT_EQ(stopped.reap(), 0);
}

CpuSet mask_of_process(pid_t process) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    EXPECT_EQ(::sched_getaffinity(process, sizeof mask, &mask), 0);
    return CpuSet::from_native(&mask, sizeof mask);
}

/// A process none of whose threads runs, and which is not stopped for all that anybody can see. By the thread
/// that made this.
class Held {
  public:
    explicit Held(pid_t process) {
        for (const auto& entry :
             std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
            const pid_t thread = std::stoi(entry.path().filename().string());
            if (::ptrace(PTRACE_SEIZE, thread, 0, 0) != 0 || ::ptrace(PTRACE_INTERRUPT, thread, 0, 0) != 0)
                continue;
            int status = 0;
            if (::waitpid(thread, &status, __WALL) == thread) threads_.push_back(thread);
        }
    }
    ~Held() {
        for (const pid_t thread : threads_) (void)::ptrace(PTRACE_DETACH, thread, 0, 0);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    [[nodiscard]] bool holds() const { return !threads_.empty(); }

  private:
    std::vector<pid_t> threads_;
};

/// What a fence has bound follows the grant; and who binds its threads itself has back what it had.
TEST(StoppedProgram, HasBackWhereItMayRun) {
    Daemon daemon({});
    const auto all = Observer(daemon.path()).status().cpus.size();
    if (all < 2) GTEST_SKIP() << "one CPU cannot be divided";
    const std::string file = daemon.folder() + "/progress";
    Progress* progress = map_progress(file.c_str());
    Child stopped({HEDDLE_BUILD_DIR "/bin/fault_client", daemon.path(), "1", file, "greedy"});
    ASSERT_TRUE(becomes_true([&] { return progress->rounds > 0; }, 5s));
    const CpuSet before = mask_of_process(stopped.pid());
    const auto fence = [&](WireClient& taker) {
        auto hello = hello_of("taker", 1);
        hello.max_cpus = 1;
        ASSERT_TRUE(taker.join(hello));
        EXPECT_TRUE(becomes_true([&] { return taker.grant().count == 1; }, 1s));
        EXPECT_EQ(mask_of_process(stopped.pid()), before - cpus_of(taker.grant().mask));
    };
    {
        const Held held(stopped.pid());
        if (!held.holds()) GTEST_SKIP() << "this system lets nobody be traced";
        {
            WireClient taker(daemon.path());
            fence(taker);
        }
        EXPECT_TRUE(becomes_true([&] { return mask_of_process(stopped.pid()) == before; }, 5s))
            << "still held";
    }
    stopped.signal(SIGSTOP);
    WireClient taker(daemon.path());
    fence(taker);
    stopped.signal(SIGCONT);
    EXPECT_TRUE(becomes_true([&] { return mask_of_process(stopped.pid()) == before; }, 20s))
        << "its first thread is none that it binds";
}

}  // namespace
}  // namespace heddle::test
