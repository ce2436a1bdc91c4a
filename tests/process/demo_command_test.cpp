// heddle demo: a scene is played with an OpenMP program in GraphicsMagick's place, and where programs are
// missing the tour goes on, and says what to install.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "bench/process.hpp"
#include "support/daemon.hpp"
#include "support/temporary_folder.hpp"

namespace heddle::test {
namespace {

using testing::HasSubstr;

TEST(Demo, WhatIsMissingIsToldWithItsPackage) {
    const TemporaryFolder folder;
    const bench::Command demo{{HEDDLE_BUILD_DIR "/bin/heddle", "demo", "-o", folder.path() + "/report"},
                              {"PATH=" + folder.path(), "HEDDLE_ARBITER=off"},
                              {}};
    const bench::Outcome outcome = bench::run_together({&demo, 1}, std::chrono::minutes(1)).front();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output,
                HasSubstr("skipped: gm is missing; apt-get install graphicsmagick desktop-base"));
    EXPECT_THAT(outcome.output, HasSubstr("skipped: mgb is missing; apt-get install mathicgb"));
}

TEST(Demo, ASceneIsTimedInBothWaysAndDrawn) {
    if (!std::filesystem::exists("/usr/share/desktop-base/softwaves-theme/grub/grub-16x9.png"))
        GTEST_SKIP() << "needs the picture of desktop-base";
    const std::string program = HEDDLE_BUILD_DIR "/bench/phases";
    if (!std::filesystem::exists(program)) GTEST_SKIP() << "no OpenMP in this build";
    const Daemon daemon({});
    const TemporaryFolder folder;
    const std::string gm = folder.path() + "/gm", report = folder.path() + "/report";
    // What numpy reads, where it is there, is a picture of four pixels.
    std::ofstream(gm) << "#!/bin/sh\nfor last; do :; done\ncase $last in\n"
                      << "*.pgm) printf 'P5\\n2 2\\n255\\nabcd' >\"$last\" ;;\n"
                      << "*) exec " << program << " --phases 1 --parallel-first 1 --regions 20 ;;\nesac\n";
    std::filesystem::create_symlink("/bin/true", folder.path() + "/true");
    std::filesystem::permissions(gm, std::filesystem::perms::owner_all);
    const bench::Command demo{{HEDDLE_BUILD_DIR "/bin/heddle", "demo", "-n", "1", "-o", report},
                              {"PATH=" + folder.path(), "HEDDLE_ARBITER=" + daemon.path()},
                              {}};
    const bench::Outcome outcome = bench::run_together({&demo, 1}, std::chrono::minutes(2)).front();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, testing::ContainsRegex("as the system runs them +[0-9.]+ s"));
    EXPECT_THAT(outcome.output, testing::ContainsRegex("[0-9.]+ times as fast"));
    EXPECT_GT(std::filesystem::file_size(report + "/scene-1.svg"), 1000U);
    EXPECT_TRUE(std::filesystem::exists(report + "/index.html"));
}

}  // namespace
}  // namespace heddle::test
