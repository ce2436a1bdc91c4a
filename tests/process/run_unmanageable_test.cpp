// heddle run of programs that it cannot manage: it says so and runs them as they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "support/daemon.hpp"
#include "support/managed.hpp"
#include "support/wait_until.hpp"
#include "support/wire_client.hpp"

namespace heddle::test {
namespace {

using bench::Outcome;
using testing::HasSubstr;
using namespace std::chrono_literals;

TEST(RunUnmanageable, AProgramWhoseGrantNobodyCanFollowKeepsNone) {
    const Managed managed;
    bench::Command command = managed.run_command({kPrograms + "plain", "link"});
    command.environment.push_back("LD_PRELOAD=" + kPrograms + "no_threads.so");
    const Outcome outcome = Managed::one(command);
    EXPECT_THAT(outcome.output, HasSubstr("sockets 0"));
    EXPECT_EQ(outcome.errors,
              "heddle: plain runs unmanaged: there can be no thread that follows its grant\n");
}

TEST(RunUnmanageable, ScriptOfAStaticInterpreterRunsUnmanagedAndSaysSo) {
    const Managed managed;
    const Outcome outcome = managed.shell(
        "printf '#! %s exit\\n' ${PROGRAMS}static_plain > $FOLDER/script; chmod +x $FOLDER/script; $RUN "
        "$FOLDER/script; echo $?");
    EXPECT_THAT(outcome.errors, HasSubstr("runs unmanaged: it is linked statically"));
}

TEST(RunUnmanageable, StaticProgramRunsUnmanagedAndSaysSo) {
    const Managed managed;
    const Outcome outcome = managed.run({kPrograms + "static_plain", "exit", "3"});
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.errors, HasSubstr("runs unmanaged: it is linked statically"));
}

TEST(RunUnmanageable, WhatAStaticProgramStartsIsManaged) {
    const Managed managed;
    const Outcome outcome = managed.shell(
        "printf '#!/bin/sh\\nexec ${PROGRAMS}plain link\\n' > $FOLDER/nproc; chmod +x $FOLDER/nproc\n"
        "PATH=$FOLDER:$PATH $RUN ${PROGRAMS}static_plain spawn");
    EXPECT_EQ(outcome.output, "program pages 2 sockets 1\n");
    EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
}

TEST(RunUnmanageable, TheArbiterStaysForTheChildrenOfAStaticProgram) {
    const test::TemporaryFolder folder;
    const std::string socket = folder.path() + "/arbiter";
    const test::Child arbiter({HEDDLE_BUILD_DIR "/bin/heddled", "--socket", socket, "--idle-exit", "5"});
    ASSERT_TRUE(test::becomes_true([&] { return test::WireClient(socket).connected(); }));
    const test::Child program({test::kHeddle, "run", "--", kPrograms + "static_plain", "sleep", "7"},
                              {"HEDDLE_ARBITER=" + socket});
    while (true) {
        const bool serves = arbiter.running();
        if (!program.running()) break;
        ASSERT_TRUE(serves) << "it ended before the program";
        std::this_thread::sleep_for(10ms);
    }
    EXPECT_TRUE(arbiter.ends_within(20s));
}

TEST(RunUnmanageable, ALibgompThatIsLinkedIntoTheProgramIsTold) {
    if (!std::filesystem::exists(kPrograms + "embedded")) GTEST_SKIP() << "there is no static libgomp";
    const Managed managed;
    const Outcome outcome = managed.run({kPrograms + "embedded", "0.05", "clause", "3"});
    EXPECT_THAT(outcome.output, HasSubstr("team 3"));
    EXPECT_EQ(outcome.errors, "heddle: libgomp is linked into embedded: its OpenMP regions run unmanaged\n");
    // Threads alone, and libgomp as a library, are no sign of it.
    EXPECT_EQ(managed.run({kPrograms + "plain", "spin", "0.01"}).errors, "");
    EXPECT_EQ(managed.run({kPrograms + "regions", "0.05", "clause", "3"}).errors, "");
}

TEST(RunUnmanageable, SetuidProgramRunsUnmanagedAndSaysSo) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make a setuid program of somebody else's";
    const Managed managed;
    const Outcome outcome = managed.shell(
        "cp ${PROGRAMS}plain $FOLDER/other && chown 65534 $FOLDER/other && chmod 4755 $FOLDER/other && "
        "$RUN $FOLDER/other exit 4");
    EXPECT_EQ(outcome.exit_code, 4);
    EXPECT_THAT(outcome.errors, HasSubstr("runs unmanaged: it is setuid or setgid"));
}

TEST(RunUnmanageable, DeepbindObjectRunsUnmanagedAndSaysSo) {
    if (!std::filesystem::exists(kPrograms + "wheels")) GTEST_SKIP() << "libgomp is missing";
    const Managed managed;
    const auto wheels = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"run", "--max", "1", "--", kPrograms + "wheels"});
        return Managed::one(managed.command(words, {"OMP_DYNAMIC=false"}));
    };
    const Outcome deep = wheels({kPrograms + ".", "deepbind"});
    EXPECT_EQ(deep.output, "numbers 3 2 3 teams 3 2 3\n");
    EXPECT_THAT(
        deep.errors,
        HasSubstr("heddle: one.so was loaded with RTLD_DEEPBIND: its OpenMP regions run unmanaged\n"));
    // The loader still sees who asks: these are found by the program's own search path alone.
    const Outcome found = wheels({""});
    EXPECT_EQ(found.output, "numbers 3 2 3 teams 1 1 1\n");
    EXPECT_EQ(found.errors, "");
}

}  // namespace
}  // namespace heddle::test
