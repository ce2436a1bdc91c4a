// Everything that OpenMP can do gives the same results under management, whatever the grant does meanwhile;
// all entries of libgomp that open regions are covered; and a region that runs waits politely while cores are
// short.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "cores/observer.hpp"
#include "launch/libgomp_entries.h"
#include "support/child.hpp"
#include "support/managed.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {
namespace {

using bench::Outcome;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

class RunOpenMp : public testing::Test {
  protected:
    void SetUp() override {
        if (!std::filesystem::exists(kPrograms + "entries")) GTEST_SKIP() << "libgomp is missing";
        if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "needs two CPUs";
    }
    /// The results of `features SECONDS`, by the system alone.
    [[nodiscard]] static std::string bare_features() {
        return Managed::one({{kPrograms + "features", "0"}, kFeatureVariables, {}}).output;
    }
    static inline const std::vector<std::string> kFeatureVariables{"OMP_CANCELLATION=true",
                                                                   "OMP_NUM_THREADS=4"};
    Managed managed_;
};

/// The entries of the program's own libgomp that open regions on the host. Those for devices do not: their
/// code runs elsewhere, or is called by another entry.
std::set<std::string> entries_of_the_installed_libgomp() {
    const Outcome listed = Managed::one(
        {{"sh", "-c", "nm -D --defined-only $(ldd " + kPrograms + "entries | awk '/libgomp/ { print $3 }')"},
         {},
         {}});
    std::set<std::string> found;
    std::istringstream lines(listed.output);
    for (std::string address, kind, name; lines >> address >> kind >> name;) {
        name = name.substr(0, name.find('@'));
        const bool opens =
            name.find("parallel") != std::string::npos || name.find("teams") != std::string::npos;
        if (name.starts_with("GOMP_") && opens) found.insert(name);
    }
    for (const char* device : {"GOMP_teams", "GOMP_teams4"}) found.erase(device);
    return found;
}

TEST_F(RunOpenMp, EveryEntryThatOpensARegionIsCovered) {
    const std::set<std::string> covered{
#define ENTRY(name) #name,
        LIBGOMP_ENTRIES(ENTRY)
#undef ENTRY
    };
    const auto installed = entries_of_the_installed_libgomp();
    EXPECT_GE(installed.size(), 10U) << "nm shows nothing";
    for (const std::string& name : installed) EXPECT_TRUE(covered.contains(name)) << name << " is new";
}

TEST_F(RunOpenMp, EveryEntryFollowsTheGrant) {
    const std::vector<std::string> variables{"OMP_NUM_THREADS=2", "OMP_DYNAMIC=false"};
    const std::string bare = Managed::one({{kPrograms + "entries"}, variables, {}}).output;
    const auto managed = [&](const char* max) {
        return Managed::one(managed_.command({"run", "--max", max, "--", kPrograms + "entries"}, variables))
            .output;
    };
    EXPECT_EQ(managed("0"), bare);
    // Of teams, which run one after the other, there are as many as asked for.
    std::string squeezed = bare;
    for (size_t at; (at = squeezed.find("threads 2")) != std::string::npos;)
        squeezed.replace(at, 9, "threads 1");
    EXPECT_EQ(managed("1"), squeezed);
    auto tried = entries_of_the_installed_libgomp();
    tried.erase("GOMP_parallel_end");
    for (const std::string& name : tried) EXPECT_THAT(bare, HasSubstr(name + " threads")) << "not tried";
}

/// A team that has begun does not grow: who works for long on end has all its threads when CPUs come.
TEST_F(RunOpenMp, TeamsThatSeldomMeetHaveAllTheirThreads) {
    const test::Child other({test::kHeddle, "run", "--", kPrograms + "regions", "60"},
                            {"HEDDLE_ARBITER=" + managed_.socket()});
    const auto others = [&] { return Observer(managed_.socket()).status().clients.size(); };
    ASSERT_TRUE(test::becomes_true([&] { return others() == 1; }));
    std::istringstream lines(managed_.run({kPrograms + "teams"}).output);
    std::map<std::string, std::vector<int>> teams;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string name;
        words >> name;
        for (int size; words >> size;) teams[name].push_back(size);
    }
    const int all = static_cast<int>(Observer(managed_.socket()).status().cpus.size());
    for (const char* name : {"loop", "apart", "meeting", "short"}) ASSERT_EQ(teams[name].size(), 10U) << name;
    EXPECT_EQ(teams["loop"].front(), all) << "which nobody has seen before";
    for (const char* name : {"loop", "apart"})
        EXPECT_GT(std::ranges::count(teams[name], all), std::ssize(teams[name]) / 2) << name;
    EXPECT_LT(teams["apart"].front(), all);
    for (const char* name : {"meeting", "short"})
        EXPECT_LT(std::ranges::count(teams[name], all), std::ssize(teams[name]) / 2) << name;
}

TEST_F(RunOpenMp, ResultsAreThoseOfTheBareRun) {
    const std::string bare = bare_features();
    EXPECT_THAT(bare, HasSubstr("cancellation 5002\n"));
    for (const char* max : {"0", "1"}) {
        const Outcome outcome = Managed::one(
            managed_.command({"run", "--max", max, "--", kPrograms + "features", "0.5"}, kFeatureVariables));
        EXPECT_EQ(outcome.output, bare) << "--max " << max;
        EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    }
}

TEST_F(RunOpenMp, ResultsAreThoseOfTheBareRunWhileTheGrantChanges) {
    const Outcome outcome = managed_.shell(
        "export OMP_CANCELLATION=true\n"
        "OMP_NUM_THREADS=4 $RUN ${PROGRAMS}features 3 & p=$!\n"
        "while kill -0 $p 2> /dev/null; do $RUN ${PROGRAMS}regions 0.05 > /dev/null; sleep 0.05; done\n"
        "wait $p");
    EXPECT_EQ(outcome.output, bare_features());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
}

/// What `waiter` printed, a wait a line.
struct Wait {
    int burnt_percent = 0;
    int switches = 0;
};
std::vector<Wait> waits_of(const std::string& output) {
    std::vector<Wait> waits;
    std::istringstream lines(output);
    std::string word;
    for (Wait wait; lines >> word >> wait.burnt_percent >> word >> wait.switches;) waits.push_back(wait);
    return waits;
}

TEST_F(RunOpenMp, LongRegionsThatOftenMeetTakeTurns) {
    const std::vector<std::string> words{
        test::kHeddle,         "run",  "--",       HEDDLE_BUILD_DIR "/bench/barriers",
        "--iterations-per-us", "1000", "--rounds", "1000000000"};
    const std::vector<std::string> variables{"HEDDLE_ARBITER=" + managed_.socket()};
    const auto granted = [&] {
        std::vector<int> counts;
        for (const auto& client : Observer(managed_.socket()).status().clients)
            counts.push_back(client.granted.count());
        return counts;
    };
    const test::Child first(words, variables);
    const int all = static_cast<int>(Observer(managed_.socket()).status().cpus.size());
    ASSERT_TRUE(test::becomes_true([&] { return granted() == std::vector{all}; }));
    std::this_thread::sleep_for(300ms);  // its region runs, and was seen to meet often
    const test::Child second(words, variables);
    int turns = 0;
    bool of_the_first = false;
    EXPECT_TRUE(test::becomes_true([&] {
        const std::vector<int> now = granted();
        const bool next = now == (of_the_first ? std::vector{0, all} : std::vector{all, 0});
        if (next) of_the_first = !of_the_first;
        return (turns += next) == 20;
    })) << turns;
}

TEST_F(RunOpenMp, RunningRegionWaitsPolitelyWhileCoresAreShort) {
    // Spins for ever, unless libgomp is switched: then it sleeps, and its partner and the other program
    // compute.
    const Outcome outcome = managed_.shell(
        "export OMP_WAIT_POLICY=active\n"
        "$RUN ${PROGRAMS}waiter 4 & p=$!\n"
        "sleep 1; OMP_WAIT_POLICY=passive $RUN ${PROGRAMS}regions 1 > /dev/null; wait $p");
    const std::vector<Wait> waits = waits_of(outcome.output);
    ASSERT_GT(waits.size(), 20U) << outcome.output << outcome.errors;
    const auto spins = [](const Wait& wait) { return wait.switches == 0; };
    const auto sleeps = [](const Wait& wait) { return wait.burnt_percent < 10 && wait.switches > 0; };
    // Alone it spins, then it sleeps for most of a second, and at the end, alone again, it spins.
    const auto alone = std::count_if(waits.begin(), waits.begin() + 10, spins);
    const auto polite = std::count_if(waits.begin(), waits.end(), sleeps);
    const auto again = std::count_if(waits.end() - 10, waits.end(), spins);
    EXPECT_GE(alone, 7) << outcome.output;
    EXPECT_GE(polite, 6) << outcome.output;
    EXPECT_GE(again, 7) << outcome.output;
}

/// A constructor of libgomp's binds the first thread, before anything of ours is asked.
TEST_F(RunOpenMp, WhatItBindsItselfDoesNotKeepItFromOtherCpus) {
    const std::string program = "${PROGRAMS}regions 0.3 set 2";
    const std::string bound = "export OMP_PROC_BIND=true OMP_PLACES=threads; $RUN ";
    const std::string in_child = "${PROGRAMS}regions 0.3 fork";
    for (const std::string& script :
         {bound + program, bound + "sh -c '" + program + "; true'", bound + in_child}) {
        const Outcome outcome = managed_.shell(script);
        EXPECT_THAT(outcome.output, testing::EndsWith(" 2\n")) << script << outcome.errors;
    }
}

}  // namespace
}  // namespace heddle::test
