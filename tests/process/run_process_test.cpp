// heddle run keeps what a process is: exit code, signals, streams, descriptors, children.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/os.hpp"
#include "support/daemon.hpp"
#include "support/managed.hpp"
#include "support/on_cpus.hpp"
#include "support/wait_until.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle::test {
namespace {

using bench::Outcome;
using testing::HasSubstr;
using namespace std::chrono_literals;

TEST(RunProcess, KeepsExitCodeAndSignal) {
    const Managed managed;
    EXPECT_EQ(managed.run({kPrograms + "plain", "exit", "42"}).exit_code, 42);
    EXPECT_EQ(managed.run({kPrograms + "plain", "raise", "15"}).exit_code, 128 + 15);
    EXPECT_EQ(managed.run({kPrograms + "plain", "raise", "6"}).exit_code, 128 + 6);
}

TEST(RunProcess, PassesStreamsThrough) {
    const Managed managed;
    const Outcome outcome =
        managed.shell("printf 'one two' | $RUN cat | $RUN wc -w; $RUN sh -c 'echo bad >&2'");
    EXPECT_EQ(outcome.output, "2\n");
    EXPECT_EQ(outcome.errors, "bad\n");
}

TEST(RunProcess, InterruptReachesTheProgramOnce) {
    const Managed managed;
    const Outcome outcome = managed.shell(
        "$RUN ${PROGRAMS}plain interrupts > $FOLDER/said & p=$!\n"
        "while ! grep -q ready $FOLDER/said; do sleep 0.01; done\n"
        "kill -INT $p; wait $p; cat $FOLDER/said");
    EXPECT_THAT(outcome.output, HasSubstr("interrupts 1\n")) << outcome.errors;
}

TEST(RunProcess, SaysWhyItCannotStart) {
    const Managed managed;
    EXPECT_EQ(managed.run({"/nonexistent/program"}).exit_code, 127);
    EXPECT_EQ(managed.run({"/etc/passwd"}).exit_code, 126);
    EXPECT_EQ(Managed::one(managed.command({"run", "--wrong", "--", "true"})).exit_code, 2);
    EXPECT_EQ(Managed::one(managed.command({"run", "--min", "-1", "--", "true"})).exit_code, 2);
    EXPECT_EQ(Managed::one(managed.command({"run", "--mode", "best", "--", "true"})).exit_code, 2);
    EXPECT_EQ(Managed::one(managed.command({"run"})).exit_code, 2);
}

TEST(RunProcess, ScriptWithoutAFirstLineIsTheShells) {
    const Managed managed;
    const Outcome outcome = managed.shell(
        "printf 'echo \"$1\" $#; exit 5\\n' > $FOLDER/script; chmod +x $FOLDER/script; $RUN $FOLDER/script "
        "'a b'");
    EXPECT_EQ(outcome.output, "a b 1\n") << outcome.errors;
    EXPECT_EQ(outcome.exit_code, 5);
}

/// The kernel calls it by its interpreter's name.
TEST(RunProcess, AScriptComesBackToANewArbiterUnderItsOwnName) {
    test::Daemon daemon({});
    const std::string script = daemon.folder() + "/a_script", asked = daemon.folder() + "/status";
    std::ofstream(script) << "#!/bin/sh\nwhile true; do sleep 0.05; done\n";
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    const std::vector<std::string> here = {"HEDDLE_ARBITER=" + daemon.path()};
    const test::Child runs({test::kHeddle, "run", "--", script}, here);
    const auto is_known = [&] {
        const auto status = nlohmann::json::parse(
            Managed::one({{test::kHeddle, "status", "--json"}, here, {}}).output, nullptr, false);
        return status.is_object() && std::ranges::any_of(status["clients"], [](const auto& client) {
                   return client["name"] == "a_script";
               });
    };
    ASSERT_TRUE(test::becomes_true(is_known, 5s));
    daemon.process().end();
    ASSERT_TRUE(daemon.start());
    EXPECT_TRUE(test::becomes_true(is_known, 5s));
}

TEST(RunProcess, ProgramMayCloseAllDescriptors) {
    const Managed managed;
    // "none" closes nothing and puts its own in the place of what is there.
    for (const char* how : {"one", "raw", "from", "old", "range", "none"}) {
        const Outcome outcome = managed.run({kPrograms + "plain", "close", how});
        EXPECT_EQ(outcome.exit_code, 0) << how;
        EXPECT_EQ(outcome.output, "intact\n") << how << ": " << outcome.errors;
    }
}

TEST(RunProcess, AProgramMayForbidItselfWhatWeDo) {
    const Managed managed;
    const Outcome outcome = managed.run({kPrograms + "plain", "sandbox"});
    EXPECT_EQ(outcome.output, "alive\n") << outcome.errors;
    EXPECT_EQ(outcome.exit_code, 0);
}

TEST(RunProcess, NothingOfTheArbiterOutlivesAnExec) {
    const Managed managed;
    EXPECT_THAT(managed.shell("$RUN ${PROGRAMS}plain link").output, "program pages 2 sockets 1\n");
    EXPECT_EQ(managed.shell("$RUN env -u LD_PRELOAD ${PROGRAMS}plain link").output,
              "program pages 0 sockets 0\n");
    EXPECT_EQ(managed.shell("$RUN env").output.find("HEDDLE_LINK"), std::string::npos);
}

TEST(RunProcess, ForkedChildHasNothingOfItsParents) {
    const Managed managed;
    EXPECT_EQ(managed.run({kPrograms + "plain", "fork"}).output,
              "parent pages 2 sockets 1\nchild pages 0 sockets 0\n");
    // A child that the C library knows nothing of keeps the socket open, and must not touch anything else.
    const Outcome raw = managed.run({kPrograms + "plain", "fork", "raw"});
    EXPECT_THAT(raw.output, HasSubstr("child pages 0")) << raw.errors;
    EXPECT_EQ(raw.exit_code, 0) << raw.output;
}

TEST(RunProcess, AChildOfOneThatHasNoCpusMayUseAll) {
    if (!std::filesystem::exists(kPrograms + "regions")) GTEST_SKIP() << "libgomp is missing";
    const test::OnCpus two(2);
    if (!two.enough()) GTEST_SKIP() << "needs two CPUs";
    const Managed managed;
    // The shell sleeps until the others have its CPUs; its child is not managed and would keep what it was
    // bound to.
    const Outcome outcome = managed.shell(
        "$RUN ${PROGRAMS}regions 2.5 > /dev/null &\n"
        "$RUN sh -c 'sleep 1.5; LD_PRELOAD= nproc' & p=$!\n"
        "sleep 1; $HEDDLE status --json > $FOLDER/status; wait $p; wait");
    const auto status = nlohmann::json::parse(std::ifstream(managed.folder() / "status"));
    const auto shell = std::find_if(status["clients"].begin(), status["clients"].end(),
                                    [](const auto& client) { return client["name"] == "sh"; });
    ASSERT_NE(shell, status["clients"].end()) << status;
    ASSERT_EQ((*shell)["granted"].size(), 0U) << "it is to have none: " << status;
    EXPECT_EQ(outcome.output, "2\n") << outcome.errors;
}

/// Under a grant of one CPU: what a program binds itself to is its own will, whatever it becomes or starts.
TEST(RunProcess, AMaskThatAProgramChoseIsKeptOverExecAndFork) {
    const test::OnCpus two(2);
    if (!two.enough()) GTEST_SKIP() << "needs two CPUs";
    const Managed managed;
    const std::string tell = "env -u LD_PRELOAD grep Cpus_allowed_list /proc/self/status";
    for (const int cpu : thread_affinity()) {
        const std::string bound = "$HEDDLE run --max 1 -- taskset -c " + std::to_string(cpu) + " ";
        const std::string expected = "Cpus_allowed_list:\t" + std::to_string(cpu) + "\n";
        EXPECT_EQ(managed.shell(bound + tell).output, expected);
        EXPECT_EQ(managed.shell(bound + "sh -c '" + tell + "; (" + tell + ")'").output, expected + expected);
    }
}

/// The daemon that it starts has to keep its lock, whatever numbers descriptors have.
TEST(RunProcess, ADaemonIsStartedWithoutAnyOfTheUsualDescriptors) {
    if (std::filesystem::exists("/run/heddle/arbiter.sock")) GTEST_SKIP() << "this machine has an arbiter";
    for (const std::string closed : {"<&-", "<&- >&-", ">&- 2>&-", "<&- 2>&-", "<&- >&- 2>&-"}) {
        const Managed managed;
        const Outcome outcome = managed.shell(
            "export HEDDLE_ARBITER=auto XDG_RUNTIME_DIR=$FOLDER/run; mkdir -m 700 $FOLDER/run\n"
            "$HEDDLE run --require -- true " +
            closed +
            "; echo $?\n"
            "for socket in $(find $FOLDER/run -type s); do " HEDDLE_BUILD_DIR
            "/bin/heddled --socket $socket 2>&1 | grep -c 'is running at'; done\n"
            "$HEDDLE status --json | grep -o '\"pid\": *[0-9]*' | head -1 | tr -dc 0-9 | xargs kill");
        EXPECT_EQ(outcome.output, "0\n1\n") << closed << ": " << outcome.errors;
    }
}

TEST(RunProcess, DaemonsAndChildrenLiveOn) {
    const Managed managed;
    const Outcome daemon = managed.shell(
        "$RUN ${PROGRAMS}plain daemon $FOLDER/done; for i in $(seq 500); do [ -s $FOLDER/done ] && break; "
        "sleep "
        "0.02; done; cat $FOLDER/done");
    EXPECT_EQ(daemon.output, "done\n");
    // What a bound program starts, by whichever call, may run where the program itself was allowed to.
    const Outcome all = Managed::one({{"nproc"}, {}, {}});
    for (const std::string child : {"plain vfork", "plain spawn", "plain system"})
        EXPECT_EQ(managed.shell("$HEDDLE run --max 1 -- ${PROGRAMS}" + child).output, all.output) << child;
    EXPECT_EQ(managed.shell("$HEDDLE run --max 1 -- sh -c 'nproc; (nproc); nproc | cat'").output,
              all.output + all.output + all.output);
}

int occurrences(const std::string& text, const std::string& words) {
    int count = 0;
    for (size_t at = 0; (at = text.find(words, at)) != std::string::npos; at += words.size()) ++count;
    return count;
}

/// Each program that comes and goes beside it changes what its threads are bound to. The script tells how
/// many programs began elsewhere than they should.
void expect_none_elsewhere(const std::string& script) {
    const Managed managed;
    const Outcome outcome =
        managed.shell("(while [ ! -e $FOLDER/done ]; do $RUN ${PROGRAMS}plain spin 0.002; done) &\n" +
                      script + "\ntouch $FOLDER/done; wait");
    ASSERT_NE(outcome.output, "") << outcome.errors;
    // Where it has no CPU for 10 ms the arbiter binds it by force, in the middle of whatever it does.
    EXPECT_LE(std::stoi(outcome.output), occurrences(managed.daemon().said(), "did not leave in time"))
        << script << outcome.errors;
}

TEST(RunProcess, ChildrenMayRunWhereItMayHoweverOftenItsGrantChanges) {
    for (const std::string how : {"spawn", "vfork", "fork"})
        expect_none_elsewhere("$HEDDLE run --require -- ${PROGRAMS}plain spawn-many 2000 " + how);
}

TEST(RunProcess, AMaskThatAProgramChoseIsKeptOverExecHoweverOftenItsGrantChanges) {
    const test::OnCpus two(2);
    if (!two.enough()) GTEST_SKIP() << "needs two CPUs";
    const std::string cpu = std::to_string(thread_affinity().last());
    expect_none_elsewhere("for i in $(seq 300); do $RUN taskset -c " + cpu +
                          " env -u LD_PRELOAD grep Cpus_allowed_list /proc/self/status; done | grep -vc '\t" +
                          cpu + "$'");
}

TEST(RunProcess, ThreadsThatAProgramBindsStayThereInAProgramAlone) {
    const test::OnCpus two(2);
    if (!two.enough()) GTEST_SKIP() << "needs two CPUs";
    const Managed managed;
    for (int i = 0; i < 4; ++i) {
        const Outcome outcome = managed.run({kPrograms + "pinned", "alone"});
        EXPECT_EQ(outcome.exit_code, 0) << outcome.output << outcome.errors;
    }
}

TEST(RunProcess, ThreadsThatAProgramBindsAreBackWhenItHasAllCpusAgain) {
    const test::OnCpus two(2);
    if (!two.enough()) GTEST_SKIP() << "needs two CPUs";
    const Managed managed;
    for (int i = 0; i < 3; ++i) {
        const Outcome outcome = managed.shell(
            "rm -f $FOLDER/ready; $HEDDLE run --mode mask -- ${PROGRAMS}pinned beside $FOLDER/ready & "
            "pinned=$!\n"
            "while [ ! -e $FOLDER/ready ] && kill -0 $pinned; do sleep 0.01; done\n"
            "$HEDDLE run --mode mask -- ${PROGRAMS}plain spin 0.3; wait $pinned");
        EXPECT_EQ(outcome.exit_code, 0) << outcome.output << outcome.errors << managed.daemon().said();
    }
}

TEST(RunProcess, RunsUnderMpirun) {
    if (Managed::one({{"sh", "-c", "command -v mpirun"}, {}, {}}).exit_code != 0)
        GTEST_SKIP() << "mpirun is not installed (apt-get install openmpi-bin)";
    const Managed managed;
    const Outcome outcome = managed.shell(
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2 $RUN sh -c "
        "'echo "
        "rank $OMPI_COMM_WORLD_RANK' | sort");
    EXPECT_EQ(outcome.output, "rank 0\nrank 1\n") << outcome.errors;
    // Each rank is a client, and gets its part of the machine.
    const test::OnCpus two(2);
    if (!std::filesystem::exists(kPrograms + "regions") || !two.enough()) return;
    const std::string mpirun =
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --bind-to none -n "
        "2 ";
    const Outcome regions = managed.shell(mpirun + "$RUN ${PROGRAMS}regions 1");
    EXPECT_EQ(std::ranges::count(regions.output, '\n'), 2) << regions.output << regions.errors;
    EXPECT_THAT(regions.output, testing::ContainsRegex("team 1.*\n.*team 1")) << regions.errors;
    EXPECT_EQ(managed.shell(mpirun + "$RUN ${PROGRAMS}plain exit 3").exit_code, 3);
}

}  // namespace
}  // namespace heddle::test
