#include "base/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "heddle/error.hpp"
#include "support/sanitized.hpp"

using testing::HasSubstr;
using testing::Not;

TEST(Settings, AMisspeltVariableIsReportedWithTheNameMeant) {
    setenv("HEDDLE_TOPOLGY", "pu:4", 1);
    const auto lines = heddle::unknown_settings();
    unsetenv("HEDDLE_TOPOLGY");
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_THAT(lines[0], HasSubstr("did you mean HEDDLE_TOPOLOGY?"));
}

TEST(Settings, ANameFarFromAllOthersIsNoMisspelling) {
    for (const char* name : {"HEDDLE_FURNITURE", "HEDDLE_XYZ", "HEDDLE_"}) {
        setenv(name, "1", 1);
        const auto lines = heddle::unknown_settings();
        unsetenv(name);
        ASSERT_EQ(lines.size(), 1U) << name;
        EXPECT_THAT(lines[0], HasSubstr("heddle(1) lists"));
        EXPECT_THAT(lines[0], Not(HasSubstr("did you mean"))) << name;
    }
}

TEST(Settings, ReadsOnlyNamesOfTheTable) {
    setenv("HEDDLE_NAME", "loom", 1);
    EXPECT_EQ(heddle::setting("HEDDLE_NAME"), "loom");
    unsetenv("HEDDLE_NAME");
    EXPECT_EQ(heddle::setting("HEDDLE_NAME"), "");
    EXPECT_THROW((void)heddle::setting("HEDDLE_NO_SUCH"), heddle::Error);
}

/// For the test below: in a program whose file gives it rights.
TEST(Settings, AreReadUnlessAProgramHasMoreRightsThanItsUser) {
    EXPECT_EQ(heddle::setting("HEDDLE_NAME").empty(),
              ::getauxval(AT_SECURE) != 0 || !std::getenv("HEDDLE_NAME"));
}

TEST(Settings, OfAUserDoNotReachProgramsWithOtherRights) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make a setuid program of somebody else's";
    if (heddle::test::kAddressSanitized) GTEST_SKIP() << "skipped: LeakSanitizer cannot trace such a program";
    const std::filesystem::path copy =
        std::filesystem::path(testing::TempDir()) / ("heddle_settings_" + std::to_string(::getpid()));
    std::filesystem::copy_file("/proc/self/exe", copy);
    EXPECT_EQ(::chown(copy.c_str(), 65534, 65534), 0);
    EXPECT_EQ(::chmod(copy.c_str(), 04755), 0);
    setenv("HEDDLE_NAME", "loom", 1);
    const int status =
        std::system((copy.string() + " --gtest_filter=Settings.AreReadUnless* >/dev/null 2>&1").c_str());
    unsetenv("HEDDLE_NAME");
    std::filesystem::remove(copy);
    EXPECT_EQ(status, 0);
}
