// heddle demo where its programs are missing: the tour goes on, and says what to install.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/process.hpp"
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

}  // namespace
}  // namespace heddle::test
