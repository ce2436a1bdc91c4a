// heddle run beside what few programs do with threads, objects and masks: all is as it would be without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/managed.hpp"
#include "support/on_cpus.hpp"
#include "topology/thread_affinity.hpp"

namespace heddle {
namespace {

using bench::Outcome;
using test::kPrograms;
using test::Managed;

const std::string kEdges = kPrograms + "edges";

TEST(RunEdges, TheLastThreadEndsAProgramWhoseFirstOneLeft) {
    const Managed managed;
    const Outcome outcome = managed.run({kEdges, "leave"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, "done\ndone\ndone\n");
}

/// The loader has its lock while constructors run.
TEST(RunEdges, AConstructorMayWaitForThreadsThatWait) {
    const Managed managed;
    const Outcome outcome = managed.run({kEdges, "load", kPrograms + "starts_threads.so"});
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

}  // namespace
}  // namespace heddle
