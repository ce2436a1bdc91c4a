// Clients killed at random moments, ten thousand of them over all campaigns: no CPU is lost, none has two
// holders, what the dead held is free again in time, and the arbiter neither leaks nor slows down.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/daemon.hpp"
#include "support/grant_history.hpp"
#include "support/sanitized.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

enum class Kind {
    kPlain,     // the protocol in a few lines
    kHandOver,  // heddle's own client, which hands CPUs to others without the arbiter
    kOpenMp,    // real programs under heddle run
};

struct Campaign {
    const char* name;
    const char* topology;  // "": the real machine
    const char* policy;
    int clients;
    int kills;
    int most_pause_us;
    Kind kind = Kind::kPlain;
};

void PrintTo(const Campaign& campaign, std::ostream* out) {
    *out << campaign.name;
}

struct Kill {
    pid_t pid;
    uint64_t sent_ns, ended_ns;
};

double p99_ms(std::vector<double> values) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    return values[values.size() * 99 / 100];
}

class KillClients : public testing::TestWithParam<Campaign> {
  protected:
    Child spawn() {
        if (GetParam().kind == Kind::kOpenMp)
            return Child({kHeddle, "run", "--require", "--", HEDDLE_BUILD_DIR "/bin/openmp_program",
                          daemon_.folder() + "/progress"},
                         {"HEDDLE_ARBITER=" + daemon_.path()});
        const char* program =
            GetParam().kind == Kind::kHandOver ? "/bin/handover_client" : "/bin/fault_client";
        return Child({HEDDLE_BUILD_DIR + std::string(program), daemon_.path(), std::to_string(random_()),
                      daemon_.folder() + "/progress"});
    }
    /// A program has a CPU as soon as it runs a region, being one of two; other clients want one now and
    /// then.
    static bool is_at_work(GrantHistory& history, pid_t pid) {
        return history.present(pid) && (GetParam().kind != Kind::kOpenMp || history.has_had_a_cpu(pid));
    }
    int below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }

    Kill kill_one(Child& victim) {
        Kill kill{victim.pid(), monotonic_ns(), 0};
        victim.signal(SIGKILL);
        EXPECT_TRUE(victim.ends_within(10s));
        kill.ended_ns = monotonic_ns();
        victim.reap();
        return kill;
    }

    Daemon daemon_{{GetParam().topology, {"--policy", GetParam().policy}, {}}};
    std::mt19937 random_{static_cast<uint32_t>(testing::UnitTest::GetInstance()->random_seed())};
};

TEST_P(KillClients, LeaveNothingBehind) {
    if (GetParam().kind == Kind::kOpenMp && ::access(HEDDLE_BUILD_DIR "/bin/openmp_program", X_OK) != 0)
        GTEST_SKIP() << "no OpenMP in this build";
    const Campaign& campaign = GetParam();
    std::vector<Kill> kills;
    std::vector<long> resident;
    GrantHistory history(daemon_.path());
    const int descriptors = daemon_.process().descriptors();
    const std::string files = daemon_.process().open_files();
    {
        std::vector<Child> clients;
        for (int i = 0; i < campaign.clients; ++i) clients.push_back(spawn());
        while (static_cast<int>(kills.size()) < campaign.kills && history.broken().empty()) {
            ::usleep(static_cast<useconds_t>(below(campaign.most_pause_us)));
            Child& victim = clients[static_cast<size_t>(below(campaign.clients))];
            // Most die as clients, however slowly this machine starts them; the others wherever they are.
            if (below(4) != 0) {
                ASSERT_TRUE(becomes_true([&] { return is_at_work(history, victim.pid()); }))
                    << "process " << victim.pid() << " was never taken in, or had no CPU";
            }
            kills.push_back(kill_one(victim));
            victim = spawn();
            // Some die before or while they register.
            if (below(5) == 0) kills.push_back(kill_one(victim)), victim = spawn();
            if (kills.size() % 100 < 2) resident.push_back(daemon_.process().resident_bytes());
        }
        for (Child& client : clients) kills.push_back(kill_one(client));
    }
    EXPECT_EQ(history.broken(), "");
    EXPECT_TRUE(becomes_true([&] { return history.held() == 0; }, 2s)) << history.held() << " CPUs are lost";
    EXPECT_FALSE(history.lost());
    EXPECT_GT(history.moves(), campaign.kills / 2) << "the clients did not compete";

    // The kernel wakes this test and the arbiter alike: how long this test waited from the signal to the end
    // of the process is the share of the machine.
    std::vector<double> freed, waited;
    for (const Kill& kill : kills) {
        const auto departure = history.departure(kill.pid);
        if (!departure) continue;  // it died before it was taken in
        freed.push_back((static_cast<double>(*departure) - static_cast<double>(kill.ended_ns)) / 1e6);
        waited.push_back(static_cast<double>(kill.ended_ns - kill.sent_ns) / 1e6);
    }
    if (!kSanitized) {
        EXPECT_GT(freed.size(), kills.size() / 2);
        EXPECT_LE(p99_ms(freed), 10 + p99_ms(waited));
        EXPECT_LE(std::ranges::max(freed), 100 + std::ranges::max(waited));
    }
    RecordProperty("kills", static_cast<int>(kills.size()));
    RecordProperty("p99_freed_us", static_cast<int>(p99_ms(freed) * 1000));
    if (!freed.empty()) RecordProperty("max_freed_us", static_cast<int>(std::ranges::max(freed) * 1000));
    RecordProperty("p99_waited_us", static_cast<int>(p99_ms(waited) * 1000));

    EXPECT_TRUE(becomes_true([&] { return daemon_.process().descriptors() == descriptors; }, 2s))
        << daemon_.process().open_files() << "\nThere were" << files;
    const long early = *std::ranges::max_element(resident.begin(), resident.begin() + resident.size() / 4);
    if (!kSanitized) {
        EXPECT_LT(daemon_.process().resident_bytes() - early, 1 << 20);
    }
    const ArbiterSnapshot status = Observer(daemon_.path()).status();
    EXPECT_TRUE(status.clients.empty());
    for (const auto& cpu : status.cpus) EXPECT_EQ(cpu.client, 0U) << "CPU " << cpu.cpu;
}

INSTANTIATE_TEST_SUITE_P(
    Campaigns, KillClients,
    testing::Values(Campaign{"sixteen_cpus", "core:16 pu:1", "proportional", 8, 4000, 4000},
                    Campaign{"the_real_machine", "", "proportional", 4, 3000, 4000},
                    Campaign{"owners", "numa:2 core:4 pu:2", "owned", 6, 2000, 4000},
                    Campaign{"at_once", "core:8 pu:1", "proportional", 8, 1000, 1},
                    Campaign{"openmp_programs", "", "proportional", 2, 300, 30'000, Kind::kOpenMp},
                    Campaign{"handing_over", "core:8 pu:1", "proportional", 6, 1500, 4000, Kind::kHandOver}),
    [](const auto& campaign) { return campaign.param.name; });

}  // namespace
}  // namespace heddle::test
