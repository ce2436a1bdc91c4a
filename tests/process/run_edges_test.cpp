// heddle run beside what few programs do with threads, objects and masks: all is as it would be without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/managed.hpp"
#include "support/on_cpus.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle::test {
namespace {

using bench::Outcome;

const std::string kEdges = kPrograms + "edges";

TEST(RunEdges, TheLastThreadEndsAProgramWhoseFirstOneLeft) {
    const Managed managed;
    const Outcome outcome = managed.run({kEdges, "leave"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, "done\ndone\ndone\n");
}

TEST(RunEdges, HoweverTheFirstThreadLeft) {
    const Managed managed;
    for (const auto& [how, output] :
         {std::pair("leave-c11", "done\ndone\ndone\n"), std::pair("be-cancelled", "done\n")}) {
        const Outcome outcome = managed.run({kEdges, how});
        EXPECT_FALSE(outcome.cut) << how << " never ended";
        EXPECT_EQ(outcome.exit_code, 0) << how << outcome.errors;
        EXPECT_EQ(outcome.output, output) << how;
    }
    EXPECT_FALSE(managed.run({kEdges, "leave-by-the-system"}).cut);
}

/// As hwloc does: that is no choice of CPUs, and the program may grow later.
TEST(RunEdges, AMaskThatIsTakenBackIsNoChoice) {
    const test::OnCpus two(2);
    if (!two.enough()) GTEST_SKIP() << "needs two CPUs";
    const Managed managed;
    EXPECT_EQ(managed.shell("$HEDDLE run --max 1 -- ${PROGRAMS}edges look-at-each").output, "2\n");
}

/// Its library wants to be the first of all.
TEST(RunEdges, AProgramOfAddressSanitizerIsManagedAsAnyOther) {
    if (!std::filesystem::exists(kPrograms + "sanitized")) GTEST_SKIP() << "the compiler has no such library";
    const Managed managed;
    for (const char* what : {"no-mask", "start-one-thread"}) {
        const Outcome outcome = managed.run({kPrograms + "sanitized", what});
        EXPECT_EQ(outcome.exit_code, 0);
        EXPECT_EQ(outcome.errors, "");
    }
}

/// Its functions stand between ours and the C library's, and see each wait.
TEST(RunEdges, AProgramOfThreadSanitizerSeesItsOwnWaits) {
    if (!std::filesystem::exists(kPrograms + "raced")) GTEST_SKIP() << "the compiler has no such library";
    const Outcome bare = Managed::one({{kPrograms + "raced"}, {}, {}});
    if (bare.exit_code != 0) GTEST_SKIP() << "ThreadSanitizer does not work here: " << bare.errors;
    const Managed managed;
    const Outcome outcome = managed.run({kPrograms + "raced"});
    EXPECT_EQ(outcome.output, "2000 turns\n");
    EXPECT_EQ(outcome.errors, "");
    EXPECT_EQ(outcome.exit_code, 0);
}

TEST(RunEdges, AProgramOfAnotherCLibraryRunsUnmanagedAndSaysSo) {
    const Managed managed;
    EXPECT_THAT(managed.run({kPrograms + "other_library"}).errors,
                testing::HasSubstr("runs unmanaged: it is made for another C library than glibc"));
}

/// What LD_PRELOAD takes for the end of a name.
TEST(RunEdges, AFolderWithASpaceInItsNameIsTold) {
    const Managed managed;
    const Outcome outcome = managed.shell(R"(
        mkdir -p "$FOLDER/a b/bin" "$FOLDER/a b/lib"
        cp $HEDDLE "$FOLDER/a b/bin/" && cp ${HEDDLE%bin/heddle}lib/libheddle-launch.so "$FOLDER/a b/lib/"
        "$FOLDER/a b/bin/heddle" run -- echo runs)");
    EXPECT_EQ(outcome.output, "runs\n");
    EXPECT_THAT(outcome.errors, testing::HasSubstr("a space or colon in its name"));
}

/// As that of a user who logs out and in again.
TEST(RunEdges, AProgramComesBackWhereTheArbitersFolderWasMadeAnew) {
    const Managed managed;
    const Outcome outcome = managed.shell(R"sh(
        serve() {
            mkdir $FOLDER/own
            ${HEDDLE}d --socket $FOLDER/own/arbiter 2>/dev/null &
            arbiter=$!
            until [ -S $FOLDER/own/arbiter ]; do sleep 0.01; kill -0 $arbiter || exit 1; done
        }
        clients() { $HEDDLE status --json 2>/dev/null | grep -c '"name": "sleep"'; }
        export HEDDLE_ARBITER=$FOLDER/own/arbiter
        serve
        $RUN sleep 50 2>/dev/null & program=$!
        until [ "$(clients)" = 1 ]; do sleep 0.01; done
        kill -9 $arbiter; wait $arbiter 2>/dev/null
        rm -r $FOLDER/own
        sleep 0.3
        serve
        for i in $(seq 1000); do [ "$(clients)" = 1 ] && echo back && break; sleep 0.01; done
        kill $program $arbiter)sh");
    EXPECT_EQ(outcome.output, "back\n") << outcome.errors;
}

/// Nor does it come back where the arbiter does after that.
TEST(RunEdges, AProgramThatForbidsItselfWhatWeDoWhileTheArbiterIsAwayStaysUnmanaged) {
    const Managed managed;
    const Outcome outcome = managed.shell(R"sh(
        serve() {
            ${HEDDLE}d --socket $FOLDER/own/arbiter 2>/dev/null &
            arbiter=$!
            until [ -S $FOLDER/own/arbiter ]; do sleep 0.01; kill -0 $arbiter || exit 1; done
        }
        mkdir $FOLDER/own
        export HEDDLE_ARBITER=$FOLDER/own/arbiter
        serve
        touch $FOLDER/wait
        $RUN ${PROGRAMS}plain sandbox $FOLDER/wait & program=$!
        until $HEDDLE status --json | grep -q '"name": "plain"'; do sleep 0.01; done
        kill -9 $arbiter; wait $arbiter 2>/dev/null
        rm $FOLDER/own/arbiter
        sleep 0.2
        rm $FOLDER/wait
        sleep 0.3
        serve
        wait $program && $HEDDLE status --json | grep -c '"name": "plain"'
        kill $arbiter)sh");
    EXPECT_EQ(outcome.output, "alive\n0\n") << outcome.errors;
}

/// The loader has its lock while constructors run.
TEST(RunEdges, AConstructorMayWaitForThreadsThatWait) {
    const Managed managed;
    const Outcome outcome = managed.run({kEdges, "load", kPrograms + "starts_threads.so"});
    EXPECT_FALSE(outcome.cut);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
}

TEST(RunEdges, AConstructorMayWaitForRegionsOfTheProgramsOwnLibgomp) {
    if (!std::filesystem::exists(kPrograms + "edges_openmp")) GTEST_SKIP() << "there is no OpenMP for C";
    const Managed managed;
    const Outcome outcome =
        managed.run({kPrograms + "edges_openmp", "load", kPrograms + "regions_in_constructor.so"});
    EXPECT_FALSE(outcome.cut);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
}

TEST(RunEdges, ALibraryWithRegionsIsUnloadedWhenItIsClosed) {
    if (!std::filesystem::exists(kPrograms + "reloaded_1.so")) GTEST_SKIP() << "there is no OpenMP for C";
    const Managed managed;
    const Outcome outcome = managed.shell(
        "$RUN ${PROGRAMS}edges reload $FOLDER/k.so ${PROGRAMS}reloaded_1.so ${PROGRAMS}reloaded_2.so");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, "100 gone\n200 gone\n");
}

TEST(RunEdges, ACallWithoutAMaskFailsAsItWould) {
    const Managed managed;
    EXPECT_EQ(managed.run({kEdges, "no-mask"}).exit_code, 0);
}

TEST(RunEdges, AChildStaysWhereItsParentHasBoundIt) {
    const test::OnCpus two(2);
    if (!two.enough()) GTEST_SKIP() << "needs two CPUs";
    const Managed managed;
    const Outcome outcome = managed.run({kPrograms + "plain", "pin-child"});
    EXPECT_EQ(outcome.output, "1\n") << outcome.errors;
}

TEST(RunEdges, AMaskThatAForkedChildChoosesIsKeptOverItsExec) {
    const test::OnCpus two(2);
    if (!two.enough()) GTEST_SKIP() << "needs two CPUs";
    const Managed managed;
    for (const int cpu : thread_affinity()) {
        const std::string number = std::to_string(cpu);
        EXPECT_EQ(managed.shell("$HEDDLE run --max 1 -- ${PROGRAMS}edges bind-child " + number).output,
                  "Cpus_allowed_list:\t" + number + "\n");
    }
}

/// A program under a grant binds another process to what it was told to.
TEST(RunEdges, AnotherProcessGetsTheMaskThatItIsGiven) {
    const test::OnCpus two(2);
    if (!two.enough()) GTEST_SKIP() << "needs two CPUs";
    const Managed managed;
    const std::string all = thread_affinity().to_list();
    const Outcome outcome =
        managed.shell("sleep 10 & taskset -pc " + std::to_string(thread_affinity().first()) +
                      " $! > /dev/null\n" + "$HEDDLE run --max 1 -- taskset -pc " + all +
                      " $! > /dev/null\ngrep Cpus_allowed_list /proc/$!/status; kill $!");
    EXPECT_EQ(outcome.output, "Cpus_allowed_list:\t" + all + "\n") << outcome.errors;
}

TEST(RunEdges, WhatTheSystemAllowsToOneThreadAloneIsAllowed) {
    const Managed managed;
    EXPECT_EQ(managed.run({kEdges, "alone"}).exit_code, 0);
}

/// Its capabilities are its thread's: ours would not be allowed what it is, and the C library would end it.
TEST(RunEdges, AProgramKeepsCapabilitiesAsItBecomesAnotherUser) {
    if (::geteuid() != 0) GTEST_SKIP() << "skipped: only root can become another user";
    const Managed managed;
    const Outcome outcome = managed.run({kEdges, "become-nobody"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
}

TEST(RunEdges, WhoHasLargeStacksAndLittleMemoryIsManaged) {
    const Managed managed;
    const Outcome outcome =
        managed.shell("ulimit -s 4000000; ulimit -v 3000000; $RUN ${PROGRAMS}edges no-mask");
    EXPECT_EQ(outcome.errors, "");
    EXPECT_EQ(outcome.exit_code, 0);
}

/// What it runs is.
TEST(RunEdges, HeddleRunUnderItselfSaysNothing) {
    const Managed managed;
    const Outcome outcome = managed.shell("$RUN $HEDDLE run -- $HEDDLE run -- echo there");
    EXPECT_EQ(outcome.output, "there\n");
    EXPECT_EQ(outcome.errors, "");
}

/// The first number of ours is one that a program may want.
TEST(RunEdges, AProgramHasItsFileByTheNumberThatItWants) {
    const Managed managed;
    const Outcome outcome = managed.shell(
        "ulimit -n 1024; $RUN bash -c 'exec 512>$FOLDER/file; echo there >&512; $HEDDLE status --json |"
        " grep -c bash; exec 512>&-'; cat $FOLDER/file");
    EXPECT_EQ(outcome.output, "1\nthere\n") << outcome.errors;
}

}  // namespace
}  // namespace heddle::test
