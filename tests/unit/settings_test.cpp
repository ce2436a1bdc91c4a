#include "base/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "heddle/error.hpp"

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
