// A hostile client that keeps running on CPUs that were asked back, whatever it is bound to: held by a real
// cpuset group where this user may make one, and let go as it should be, also by an arbiter that was killed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "arbiter/cpuset_fence.hpp"
#include "base/failpoint.h"
#include "cores/observer.hpp"
#include "heddle/error.hpp"
#include "heddle/machine.hpp"
#include "support/daemon.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

using namespace std::chrono_literals;

#define HEDDLE_FAILPOINT_NAME(name) #name,
constexpr const char* kFencePoints[] = {HEDDLE_FENCE_FAILPOINTS(HEDDLE_FAILPOINT_NAME)};

/// A program that does not leave, on the real machine, and another that lacks what it has.
class CpusetFenceOfAHostileClient : public testing::Test {
  protected:
    void SetUp() override {
        if (const Machine machine = Machine::detect();
            machine.synthetic() || allowance(machine).usable.count() < 2)
            GTEST_SKIP() << "needs two real CPUs";
        Os os;
        if (const std::string missing = CpusetFence(os, "test").missing(); !missing.empty())
            GTEST_SKIP() << "no cpuset group can be made here: " << missing;
        const auto own = cpuset_group_of(os, "self");
        ASSERT_TRUE(own);
        own_group_ = own->folder;
    }
    /// An arbiter that is killed leaves its groups.
    void TearDown() override {
        if (!daemon_) return;
        daemon_->process().signal(SIGTERM);
        EXPECT_TRUE(daemon_->process().ends_within(10s));
        EXPECT_EQ(groups_left(), 0);
    }
    void start(std::vector<std::string> variables = {}, const std::string& starts_programs_and = {}) {
        daemon_.emplace(Daemon::Options{"", {"--verbose"}, std::move(variables)});
        start_clients(starts_programs_and);
    }
    /// Those before them go first: the hostile one is to have all CPUs when the other comes.
    void start_clients(const std::string& starts_programs_and = {}) {
        const auto are_there = [&](size_t clients) {
            return becomes_true([&] { return Observer(daemon_->path()).status().clients.size() == clients; },
                                10s);
        };
        other_ = WireClient();
        hostile_ = Child();
        ASSERT_TRUE(are_there(0));
        std::vector<std::string> words{HEDDLE_BUILD_DIR "/bin/unruly_client", daemon_->path()};
        if (!starts_programs_and.empty()) words.push_back(starts_programs_and);
        hostile_ = Child(words);
        ASSERT_TRUE(are_there(1));
        other_ = WireClient(daemon_->path());
        ASSERT_TRUE(other_.join(hello_of("waits", 64)));
    }
    [[nodiscard]] std::optional<ArbiterSnapshot::Client> hostile() const {
        for (const auto& client : Observer(daemon_->path()).status().clients)
            if (client.name == "unruly") return client;
        return std::nullopt;
    }
    [[nodiscard]] bool is_held() const {
        const auto client = hostile();
        return client && client->fenced == HEDDLE_FENCED_BY_CPUSET;
    }
    [[nodiscard]] static std::string group_of(pid_t process) {
        Os os;
        const auto group = cpuset_group_of(os, std::to_string(process));
        return group ? group->folder : "";
    }
    /// Groups that hold the hostile client, of whatever arbiter.
    [[nodiscard]] int groups_left() const {
        Os os;
        return static_cast<int>(
            std::ranges::count_if(os.folders_in(own_group_), [&](const std::string& name) {
                return name.starts_with("heddle-fence-") &&
                       name.ends_with("-" + std::to_string(hostile_.pid()));
            }));
    }
    /// Where threads of the process run, and where all of them may. One that sleeps shows where it ran last.
    [[nodiscard]] static CpuSet seen_on(pid_t process) {
        CpuSet seen;
        for (const auto& thread :
             std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
            std::ifstream file(thread.path() / "stat");
            std::string line;
            std::getline(file, line);
            std::istringstream words(line.substr(line.rfind(')') + 1));
            std::string state, word;
            words >> state;
            for (int i = 4; i <= 39 && words >> word; ++i) {
            }
            if (state == "R") seen.insert(std::stoi(word));
            cpu_set_t mask;
            if (::sched_getaffinity(std::stoi(thread.path().filename()), sizeof mask, &mask) == 0)
                seen |= CpuSet::from_native(&mask, sizeof mask);
        }
        return seen;
    }

    std::string own_group_;
    std::optional<Daemon> daemon_;
    Child hostile_;
    WireClient other_;
};

TEST_F(CpusetFenceOfAHostileClient, ItCannotRunWhereItWasFencedOff) {
    start();
    ASSERT_TRUE(becomes_true([&] { return is_held(); }, 10s)) << daemon_->said();
    EXPECT_TRUE(becomes_true([&] { return other_.grant().count > 0; }, 10s));
    const CpuSet granted = hostile()->granted;
    ASSERT_FALSE(granted.empty());
    for (int look = 0; look < 1000; ++look) {
        const CpuSet seen = seen_on(hostile_.pid());
        ASSERT_TRUE(granted.contains(seen)) << seen.to_list() << ", granted " << granted.to_list();
    }
    EXPECT_EQ(groups_left(), 1);
    EXPECT_NE(group_of(hostile_.pid()), own_group_);
}

TEST_F(CpusetFenceOfAHostileClient, ItGetsCpusBackWithoutBeingLetGo) {
    start();
    ASSERT_TRUE(becomes_true([&] { return is_held(); }, 10s)) << daemon_->said();
    const int before = hostile()->granted.count();
    other_ = WireClient();
    EXPECT_TRUE(becomes_true([&] { return hostile()->granted.count() > before; }, 10s));
    EXPECT_TRUE(becomes_true([&] { return seen_on(hostile_.pid()) == hostile()->granted; }, 10s))
        << seen_on(hostile_.pid()).to_list();
    EXPECT_TRUE(is_held());
}

TEST_F(CpusetFenceOfAHostileClient, ItIsLetGoWhenItObeysButNotASecondTime) {
    start();
    ASSERT_TRUE(becomes_true([&] { return is_held(); }, 10s)) << daemon_->said();
    hostile_.signal(SIGUSR1);
    const std::string again = "and is held by a cpuset group";
    const auto times = [&](const std::string& line) {
        const std::string said = daemon_->said();
        int count = 0;
        for (size_t at = said.find(line); at != std::string::npos; at = said.find(line, at + 1)) ++count;
        return count;
    };
    EXPECT_TRUE(becomes_true([&] { return times(again) == 2; }, 10s)) << daemon_->said();
    EXPECT_EQ(times("obeys and is no longer held"), 1);
    hostile_.signal(SIGUSR1);
    hostile_.signal(SIGUSR2);
    const int lefts = times("no longer held");
    EXPECT_TRUE(becomes_true([&] { return seen_on(hostile_.pid()) == hostile()->granted; }, 10s));
    EXPECT_EQ(times("no longer held"), lefts);
    EXPECT_TRUE(is_held());
}

TEST_F(CpusetFenceOfAHostileClient, OneThatSaysThatItStartsProgramsAndComputesIsHeldABitLater) {
    start({}, "computes");
    EXPECT_TRUE(becomes_true([&] { return is_held(); }, 10s)) << daemon_->said();
}

/// As a program does in system(3), of which nothing may be left: what it starts would have no other CPUs.
TEST_F(CpusetFenceOfAHostileClient, OneThatStartsProgramsAndSleepsMeanwhileIsNotHeld) {
    start({}, "sleeps");
    ASSERT_TRUE(becomes_true([&] { return hostile()->fenced == HEDDLE_FENCED_BY_AFFINITY; }, 10s))
        << daemon_->said();
    EXPECT_FALSE(becomes_true([&] { return is_held(); }, 2s)) << daemon_->said();
}

TEST_F(CpusetFenceOfAHostileClient, OneThatBehavesFromThenOnIsForgotten) {
    start();
    ASSERT_TRUE(becomes_true([&] { return is_held(); }, 10s)) << daemon_->said();
    hostile_.signal(SIGUSR2);
    EXPECT_TRUE(becomes_true([&] { return hostile()->fenced == 0; }, 10s)) << daemon_->said();
    EXPECT_EQ(group_of(hostile_.pid()), own_group_);
    EXPECT_EQ(groups_left(), 0);
}

TEST_F(CpusetFenceOfAHostileClient, WhatItForkedComesBackWhenItDies) {
    start();
    ASSERT_TRUE(becomes_true([&] { return is_held(); }, 10s)) << daemon_->said();
    hostile_.signal(SIGHUP);
    const std::string pid = std::to_string(hostile_.pid());
    pid_t child = 0;
    ASSERT_TRUE(becomes_true(
        [&] {
            std::ifstream file("/proc/" + pid + "/task/" + pid + "/children");
            return static_cast<bool>(file >> child);
        },
        10s));
    EXPECT_EQ(group_of(child), group_of(hostile_.pid()));
    hostile_.signal(SIGKILL);
    EXPECT_TRUE(becomes_true([&] { return group_of(child) == own_group_ && groups_left() == 0; }, 10s));
    ::kill(child, SIGKILL);
}

TEST_F(CpusetFenceOfAHostileClient, TheEndOfTheArbiterPutsItBack) {
    start();
    ASSERT_TRUE(becomes_true([&] { return is_held(); }, 10s)) << daemon_->said();
    daemon_->process().signal(SIGTERM);
    ASSERT_TRUE(daemon_->process().ends_within(10s));
    EXPECT_EQ(group_of(hostile_.pid()), own_group_);
    EXPECT_EQ(groups_left(), 0);
    EXPECT_TRUE(hostile_.running());
}

class FenceFailpoint : public CpusetFenceOfAHostileClient,
                       public testing::WithParamInterface<std::tuple<const char*, int>> {
  protected:
    /// False where the arbiter has ended before: it may have had to try again.
    [[nodiscard]] bool holds_it_and_lets_it_go() {
        EXPECT_TRUE(comes_to([&] { return is_held(); })) << daemon_->said();
        hostile_.signal(SIGUSR2);
        EXPECT_TRUE(comes_to([&] {
            const auto client = hostile();
            return client && client->fenced == 0;
        })) << daemon_->said();
        return daemon_->process().running();
    }

  private:
    /// Or there is no arbiter any more.
    template <class Condition>
    [[nodiscard]] bool comes_to(Condition condition) const {
        const auto reached = [&] {
            try {
                return condition();
            } catch (const Error&) {
                return !daemon_->process().running();
            }
        };
        return becomes_true(reached, 10s);
    }
};

/// An arbiter passes each point once for a client that it holds, and lets go: of several the last one counts.
TEST_P(FenceFailpoint, TheNextArbiterLeavesNoGroup) {
    const auto [point, passage] = GetParam();
    start({std::string("TEST_FAILPOINT=") + point + ":" + std::to_string(passage)});
    for (int before = 1; before < passage && holds_it_and_lets_it_go(); ++before) start_clients();
    // The last of the points is passed when somebody is let go.
    if (!daemon_->process().ends_within(2s)) daemon_->process().signal(SIGTERM);
    ASSERT_TRUE(daemon_->process().ends_within(10s)) << daemon_->said();
    const int status = daemon_->process().reap();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "the point was not passed";
    EXPECT_TRUE(hostile_.running());
    EXPECT_EQ(groups_left(), 1) << "a kill at this point leaves the group behind";
    daemon_->set_variables({});
    ASSERT_TRUE(daemon_->start());
    EXPECT_TRUE(becomes_true([&] { return groups_left() == 0; }, 10s));
    EXPECT_EQ(group_of(hostile_.pid()), own_group_);
    EXPECT_TRUE(hostile_.running());
}

INSTANTIATE_TEST_SUITE_P(Points, FenceFailpoint,
                         testing::Combine(testing::ValuesIn(kFencePoints), testing::Range(1, 4)),
                         [](const auto& each) {
                             return std::string(std::get<0>(each.param)) + "_" +
                                    std::to_string(std::get<1>(each.param));
                         });

}  // namespace
}  // namespace heddle::test
