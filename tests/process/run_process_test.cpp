// heddle run keeps what a process is: exit code, signals, streams, descriptors, children.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/managed.hpp"

namespace heddle {
namespace {

using bench::Outcome;
using test::kPrograms;
using test::Managed;
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

TEST(RunProcess, WithoutAnArbiterTheProgramRunsWithOneLine) {
    const Outcome off =
        Managed::one({{test::kHeddle, "run", "--", "echo", "there"}, {"HEDDLE_ARBITER=off"}, {}});
    EXPECT_EQ(off.output, "there\n");
    EXPECT_EQ(off.errors, "heddle run: echo runs unmanaged: HEDDLE_ARBITER is off\n");
    const Outcome required = Managed::one(
        {{test::kHeddle, "run", "--require", "--", "echo", "there"}, {"HEDDLE_ARBITER=off"}, {}});
    EXPECT_EQ(required.exit_code, 69);
    EXPECT_EQ(required.output, "");
}

TEST(RunProcess, StaticProgramRunsUnmanagedAndSaysSo) {
    const Managed managed;
    const Outcome outcome = managed.run({kPrograms + "static_plain", "exit", "3"});
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.errors, HasSubstr("runs unmanaged: it is linked statically"));
}

TEST(RunProcess, SetuidProgramRunsUnmanagedAndSaysSo) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make a setuid program of somebody else's";
    const Managed managed;
    const Outcome outcome = managed.shell(
        "cp ${PROGRAMS}plain $FOLDER/other && chown 65534 $FOLDER/other && chmod 4755 $FOLDER/other && "
        "$RUN $FOLDER/other exit 4");
    EXPECT_EQ(outcome.exit_code, 4);
    EXPECT_THAT(outcome.errors, HasSubstr("runs unmanaged: it is setuid or setgid"));
}

TEST(RunProcess, StoppedArbiterDelaysAProgramShortly) {
    const Managed managed;
    ::kill(managed.daemon(), SIGSTOP);
    const Outcome outcome = managed.run({"echo", "there"});
    EXPECT_EQ(outcome.output, "there\n");
    EXPECT_THAT(outcome.errors, HasSubstr("runs unmanaged"));
    EXPECT_LT(outcome.ended - outcome.started, 5s);
}

TEST(RunProcess, ProgramMayCloseAllDescriptors) {
    const Managed managed;
    for (const char* how : {"close", "close-raw"}) {
        const Outcome outcome = managed.run({kPrograms + "plain", how});
        EXPECT_EQ(outcome.exit_code, 0) << how;
        EXPECT_EQ(outcome.output, "intact\n") << how << ": " << outcome.errors;
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

TEST(RunProcess, RunsUnderMpirun) {
    if (Managed::one({{"sh", "-c", "command -v mpirun"}, {}, {}}).exit_code != 0)
        GTEST_SKIP() << "mpirun is not installed (apt-get install openmpi-bin)";
    const Managed managed;
    const Outcome outcome = managed.shell(
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2 $RUN sh -c "
        "'echo "
        "rank $OMPI_COMM_WORLD_RANK' | sort");
    EXPECT_EQ(outcome.output, "rank 0\nrank 1\n") << outcome.errors;
}

}  // namespace
}  // namespace heddle
