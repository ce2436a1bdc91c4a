// ArbiterClient against a real daemon on a machine that is not there: what clients hold, hand to each other,
// are asked back, and survive.
#include "cores/arbiter_client.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <random>

#include "arbiter/server.hpp"
#include "cores/observer.hpp"
#include "support/daemon.hpp"
#include "support/wait_until.hpp"

namespace heddle {
namespace {

using namespace std::chrono_literals;

constexpr int kCpus = 8;

Time in(Nanoseconds time) {
    return std::chrono::time_point_cast<Nanoseconds>(std::chrono::steady_clock::now()) + time;
}

/// Who is on each CPU: 0 for nobody. Two at a time fail the test.
using Users = std::array<std::atomic<int>, kCpus>;

/// A client that runs on all that it holds, and leaves at once when asked.
class Program {
  public:
    Program(const std::string& path, Users& users, int id, int demand)
        : users_(users), id_(id), client_(options(path, demand), callbacks()) {
        const std::lock_guard guard(mutex_);
        for (const int cpu : client_.held())
            if (!mine_.contains(cpu)) use(cpu);
    }
    ~Program() {
        const std::lock_guard guard(mutex_);
        ended_ = true;
        for (const int cpu : CpuSet(mine_)) leave(cpu);
    }
    ArbiterClient& client() { return client_; }
    CpuSet mine() {
        const std::lock_guard guard(mutex_);
        return mine_;
    }
    ArbiterClient::Lent lend(int cpu) {
        const std::lock_guard guard(mutex_);
        if (!mine_.contains(cpu)) return ArbiterClient::Lent::kNotHeld;
        leave(cpu);
        const auto lent = client_.lend(cpu);
        // Handed to us a moment ago: to be lent once the arbiter knows.
        if (lent == ArbiterClient::Lent::kNotHeld && client_.held().contains(cpu)) use(cpu);
        return lent;
    }
    bool reclaim(int cpu) {
        const std::lock_guard guard(mutex_);
        if (!client_.reclaim(cpu)) return false;
        use(cpu);
        return true;
    }
    bool take(int cpu) {
        const std::lock_guard guard(mutex_);
        if (!client_.take(cpu)) return false;
        use(cpu);
        return true;
    }

  private:
    static ArbiterClientOptions options(const std::string& path, int demand) {
        ArbiterClientOptions options;
        options.name = "test";
        options.demand = demand;
        options.allowed = CpuSet::range(0, kCpus);
        options.path = path;
        return options;
    }
    ArbiterClient::Callbacks callbacks() {
        return {[this](const CpuSet& cpus) {
                    const std::lock_guard guard(mutex_);
                    for (const int cpu : cpus)
                        if (!mine_.contains(cpu)) use(cpu);
                },
                [this](const CpuSet& cpus) {
                    const std::lock_guard guard(mutex_);
                    for (const int cpu : cpus) {
                        if (mine_.contains(cpu)) leave(cpu);
                        client_.released(cpu);
                    }
                }};
    }
    void use(int cpu) {
        if (ended_) return;
        EXPECT_EQ(users_[static_cast<size_t>(cpu)].exchange(id_), 0) << "two on CPU " << cpu;
        mine_.insert(cpu);
    }
    void leave(int cpu) {
        EXPECT_EQ(users_[static_cast<size_t>(cpu)].exchange(0), id_);
        mine_.erase(cpu);
    }

    Users& users_;
    int id_;
    std::mutex mutex_;
    CpuSet mine_;
    bool ended_ = false;
    ArbiterClient client_;
};

/// An arbiter on a thread of this process that waits for ever for CPUs to be left: on a busy machine a
/// fence would come before the test's threads do.
class PatientArbiter {
  public:
    explicit PatientArbiter(const std::string& path)
        : stop_(::eventfd(0, EFD_CLOEXEC)),
          server_(config(path),
                  Arbiter(Machine::synthetic("core:8 pu:1"), make_policy("proportional"),
                          ArbiterLimits{.fence_after = 1h}, clock_.now()),
                  os_, clock_) {
        server_.on_readable(stop_.get(), [this] { server_.stop(); });
        thread_ = std::thread([this] { server_.run(); });
    }
    ~PatientArbiter() {
        (void)::eventfd_write(stop_.get(), 1);
        thread_.join();
    }

  private:
    static ServerConfig config(const std::string& path) {
        ServerConfig config;
        config.path = path;
        return config;
    }
    Os os_;
    SteadyClock clock_;
    Descriptor stop_;
    Server server_;
    std::thread thread_;
};

class ArbiterClientTest : public testing::Test {
  protected:
    [[nodiscard]] std::string path() const { return path_.empty() ? daemon_.path() : path_; }
    Program& start(int demand) {
        programs_.push_back(
            std::make_unique<Program>(path(), users_, static_cast<int>(programs_.size()) + 1, demand));
        return *programs_.back();
    }
    /// Lends CPUs of `from` until one goes to a successor; the others come back. -1: none did in time.
    int hand_over(Program& from) {
        int handed = -1;
        (void)test::becomes_true(
            [&] {
                for (const int cpu : from.mine()) {
                    const auto lent = from.lend(cpu);
                    if (lent == ArbiterClient::Lent::kHandedOver) handed = cpu;
                    if (handed >= 0) return true;
                    (void)from.reclaim(cpu);
                }
                return false;
            },
            2s);
        return handed;
    }
    uint32_t holder(int cpu) {
        for (const auto& entry : Observer(daemon_.path()).status().cpus)
            if (entry.cpu == cpu) return entry.client;
        return 0;
    }

    /// On a busy machine a fence would come before the test's threads leave a CPU, and two would be on it.
    test::Daemon daemon_{
        {.topology = "core:8 pu:1", .arguments = {"--fence-after", "3600000"}, .variables = {}}};
    /// For a failure: who the arbiter says holds each CPU, and what the programs say.
    std::string whereabouts() {
        std::string text;
        for (const auto& entry : Observer(path()).status().cpus)
            text += "CPU " + std::to_string(entry.cpu) + " of client " + std::to_string(entry.client) +
                    (entry.leaving ? " (leaving), used by " : ", used by ") +
                    std::to_string(users_[static_cast<size_t>(entry.cpu)]) + "\n";
        for (const auto& program : programs_)
            text +=
                "held " + program->client().held().to_list() + ", used " + program->mine().to_list() + "\n";
        return text;
    }

    std::string path_;  // of an arbiter other than the daemon
    Users users_{};
    std::vector<std::unique_ptr<Program>> programs_;
};

TEST_F(ArbiterClientTest, HoldsAllAloneAndHalfOfItBesideAnother) {
    Program& a = start(kCpus);
    EXPECT_TRUE(a.client().managed()) << a.client().problem();
    EXPECT_EQ(a.mine().count(), kCpus);
    Program& b = start(kCpus);
    EXPECT_TRUE(test::becomes_true([&] { return b.mine().count() == 4 && a.mine().count() == 4; }, 2s));
    programs_.pop_back();
    EXPECT_TRUE(test::becomes_true([&] { return a.mine().count() == kCpus; }, 2s));
}

TEST_F(ArbiterClientTest, WhatIsLentWhileNobodyWaitsCanBeTakenBack) {
    Program& a = start(kCpus);
    EXPECT_EQ(a.lend(3), ArbiterClient::Lent::kLent);
    EXPECT_FALSE(a.client().held().contains(3));
    EXPECT_TRUE(a.reclaim(3));
    EXPECT_FALSE(a.reclaim(3)) << "it is ours already";
}

TEST_F(ArbiterClientTest, WhatIsLentGoesToWhoComesLater) {
    Program& a = start(kCpus);
    a.client().set_demand(2, true);
    for (int cpu = 0; cpu < 6; ++cpu) EXPECT_EQ(a.lend(cpu), ArbiterClient::Lent::kLent);
    Program& b = start(6);
    EXPECT_TRUE(test::becomes_true([&] { return b.mine().count() == 6; }, 2s));
    EXPECT_EQ(a.mine().to_list(), "6-7");
    for (int cpu = 0; cpu < 6; ++cpu) EXPECT_FALSE(a.reclaim(cpu));
}

/// Its link thread is in the callback while another comes, gets what does not leave in time, and goes.
TEST_F(ArbiterClientTest, WhatIsLeftAfterItWasGivenAgainIsTakenBack) {
    const test::Daemon impatient({.topology = "core:8 pu:1", .arguments = {}, .variables = {}});
    path_ = impatient.path();
    std::mutex mutex;
    CpuSet leaving, gained;
    std::atomic<bool> goes_on{false};
    ArbiterClientOptions options;
    options.demand = kCpus;
    options.allowed = CpuSet::range(0, kCpus);
    options.path = path();
    ArbiterClient client(options, {[&](const CpuSet& cpus) {
                                       const std::lock_guard guard(mutex);
                                       gained |= cpus;
                                   },
                                   [&](const CpuSet& cpus) {
                                       {
                                           const std::lock_guard guard(mutex);
                                           leaving |= cpus;
                                       }
                                       goes_on.wait(false);
                                   }});
    const auto all_are_its_own = [&] {
        const auto cpus = Observer(path()).status().cpus;
        return std::ranges::all_of(cpus, [](const auto& cpu) { return cpu.client == 1 && !cpu.leaving; });
    };
    Program& other = start(kCpus);
    EXPECT_TRUE(test::becomes_true([&] { return other.mine().count() == 4; }, 10s)) << whereabouts();
    programs_.clear();
    EXPECT_TRUE(test::becomes_true(all_are_its_own, 10s)) << whereabouts();
    {
        const std::lock_guard guard(mutex);
        for (const int cpu : leaving) client.released(cpu);
    }
    goes_on = true;
    goes_on.notify_one();
    EXPECT_TRUE(test::becomes_true([&] { return client.held().count() == kCpus; }, 10s))
        << client.held().to_list() << "\n"
        << whereabouts();
    const auto is_told = [&] {
        const std::lock_guard guard(mutex);
        return gained == leaving;
    };
    EXPECT_TRUE(test::becomes_true(is_told, 10s));
}

TEST_F(ArbiterClientTest, HandsACpuOverWithoutTheDaemon) {
    Program& a = start(kCpus);
    Program& b = start(kCpus);
    ASSERT_TRUE(test::becomes_true([&] { return b.mine().count() == 4; }, 2s));
    // Until somebody was named in advance; from then on the daemon has no part in it.
    ASSERT_GE(hand_over(a), 0);
    ASSERT_TRUE(test::becomes_true([&] { return a.mine().count() == 4; }, 2s));
    daemon_.process().signal(SIGSTOP);
    const int cpu = hand_over(a);
    ASSERT_GE(cpu, 0);
    EXPECT_TRUE(b.take(cpu));
    EXPECT_TRUE(b.client().held().contains(cpu));
    daemon_.process().signal(SIGCONT);
}

TEST_F(ArbiterClientTest, TheDaemonLearnsWhoHasTheCpu) {
    Program& a = start(kCpus);
    Program& b = start(kCpus);
    ASSERT_TRUE(test::becomes_true([&] { return b.mine().count() == 4; }, 2s));
    a.client().set_demand(3, true);
    const int cpu = hand_over(a);
    ASSERT_GE(cpu, 0);
    EXPECT_TRUE(test::becomes_true([&] { return holder(cpu) == 2; }, 2s)) << holder(cpu);
    EXPECT_TRUE(test::becomes_true([&] { return b.mine().contains(cpu); }, 2s));
}

TEST_F(ArbiterClientTest, ASleeperIsWokenByTheLender) {
    Program& a = start(kCpus);
    Program& b = start(kCpus);
    ASSERT_TRUE(test::becomes_true([&] { return b.mine().count() == 4; }, 2s));
    std::vector<std::thread> sleepers;
    std::atomic<int> woken{0};
    const CpuSet wanted = a.mine();
    for (const int cpu : wanted)
        sleepers.emplace_back([&, cpu] { woken += b.client().wait_for(cpu, 0ns, in(10s)) ? 1 : 0; });
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(woken, 0);
    EXPECT_GE(hand_over(a), 0);
    EXPECT_TRUE(test::becomes_true([&] { return woken >= 1; }, 2s));
    programs_.erase(programs_.begin());  // the rest comes through the daemon
    EXPECT_TRUE(test::becomes_true([&] { return woken == wanted.count(); }, 2s));
    for (std::thread& sleeper : sleepers) sleeper.join();
}

TEST_F(ArbiterClientTest, KeepsWhatItHoldsWhileTheDaemonIsDeadAndComesBack) {
    Program& a = start(kCpus);
    Program& b = start(kCpus);
    ASSERT_TRUE(test::becomes_true([&] { return b.mine().count() == 4 && a.mine().count() == 4; }, 2s));
    for (int round = 0; round < 3; ++round) {
        daemon_.process().end();
        EXPECT_EQ(a.mine().count(), 4);
        ASSERT_TRUE(daemon_.start());
        EXPECT_TRUE(
            test::becomes_true([&] { return Observer(daemon_.path()).status().clients.size() == 2; }, 2s));
        EXPECT_TRUE(test::becomes_true([&] { return a.mine().count() == 4 && b.mine().count() == 4; }, 2s));
    }
}

TEST_F(ArbiterClientTest, AForkedChildIsAClientOfItsOwn) {
    Program& a = start(4);
    const pid_t child = ::fork();
    if (child == 0) {
        const bool managed = a.client().managed();
        const bool listed =
            test::becomes_true([&] { return Observer(daemon_.path()).status().clients.size() == 2; }, 2s);
        ::_exit(managed && listed ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(a.client().managed());
    EXPECT_TRUE(test::becomes_true([&] { return a.mine().count() == kCpus; }, 2s));
}

TEST(ArbiterClient, IsAloneWithoutAnArbiter) {
    ArbiterClientOptions options;
    options.path = "/nonexistent/arbiter.sock";
    options.allowed = {0, 1};
    ArbiterClient client(options, {});
    EXPECT_FALSE(client.managed());
    EXPECT_NE(client.problem(), "");
    EXPECT_EQ(client.held(), CpuSet({0, 1}));
    EXPECT_EQ(client.lend(1), ArbiterClient::Lent::kLent);
    EXPECT_EQ(client.held(), CpuSet({0}));
    EXPECT_TRUE(client.reclaim(1));
    EXPECT_FALSE(client.wait_for(5, 0ns, in(1ms)));
}

TEST_F(ArbiterClientTest, ManyThreadsHandCpusRoundAndNoneIsUsedTwice) {
    path_ = daemon_.folder() + "/patient.sock";
    const PatientArbiter arbiter(path_);
    for (int i = 0; i < 3; ++i) start(kCpus);
    std::atomic<bool> done{false};
    std::atomic<long> handed{0}, taken{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 6; ++t)
        threads.emplace_back([&, t] {
            std::mt19937 random(t);
            Program& program = *programs_[t % 3];
            while (!done) {
                const int cpu = static_cast<int>(random() % kCpus);
                switch (random() % 5) {
                    case 0:
                        handed += program.lend(cpu) == ArbiterClient::Lent::kHandedOver;
                        break;
                    case 1:
                        (void)program.reclaim(cpu);
                        break;
                    case 2:
                        program.client().set_demand(static_cast<int>(random() % (kCpus + 1)),
                                                    random() % 2 == 0);
                        break;
                    case 3:
                        std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
                        break;
                    default:
                        taken += program.take(cpu);
                }
            }
        });
    std::this_thread::sleep_for(1500ms);
    EXPECT_TRUE(test::becomes_true([&] { return handed > 50 && taken > 0; }, 20s));
    done = true;
    for (std::thread& thread : threads) thread.join();
    for (const auto& program : programs_) {
        program->client().set_demand(kCpus, true);
        for (int cpu = 0; cpu < kCpus; ++cpu) (void)program->reclaim(cpu);
    }
    EXPECT_TRUE(test::becomes_true(
        [&] {
            int used = 0;
            for (int cpu = 0; cpu < kCpus; ++cpu) used += users_[static_cast<size_t>(cpu)] != 0;
            return used == kCpus;
        },
        3s))
        << "a CPU was lost: " << whereabouts();
    programs_.clear();
}

}  // namespace
}  // namespace heddle
