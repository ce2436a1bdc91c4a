// Variables that cannot be are told, not ignored. The C interface's part is in compat/heddle_drs_test.c.
#include "cores/client_settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "heddle/error.hpp"

namespace heddle {
namespace {

using testing::HasSubstr;

class Variable {
  public:
    Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
    ~Variable() { ::unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

  private:
    const char* name_;
};

struct Bad {
    const char* name;
    const char* value;
    const char* says;
};

class ClientSettings : public testing::TestWithParam<Bad> {};

TEST_P(ClientSettings, AValueThatCannotBeIsToldByName) {
    const Variable variable(GetParam().name, GetParam().value);
    try {
        check_client_settings();
        ADD_FAILURE() << "it is taken";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kBadInput);
        EXPECT_THAT(error.what(), HasSubstr(GetParam().name));
        EXPECT_THAT(error.what(), HasSubstr(GetParam().says));
    }
}

INSTANTIATE_TEST_SUITE_P(
    Values, ClientSettings,
    testing::Values(Bad{"HEDDLE_OWN", "junk", "a list of CPUs below 1024, as 0-3,8, not 'junk'"},
                    Bad{"HEDDLE_OWN", "0-1024", "not '0-1024'"},
                    Bad{"HEDDLE_MIN", "many", "a number from 0 to 1024, not 'many'"},
                    Bad{"HEDDLE_MIN", "-1", "not '-1'"}, Bad{"HEDDLE_MAX", "1025", "not '1025'"},
                    Bad{"HEDDLE_MAX", "99999999999999999999", "not '99999999999999999999'"},
                    Bad{"HEDDLE_WEIGHT", "0", "a number from 1 to 1000, not '0'"},
                    Bad{"HEDDLE_MODE", "sideways", "auto, threads or mask, not 'sideways'"},
                    Bad{"HEDDLE_ARBITER", "relative/path", "'relative/path'; it has to be auto, off"}));

TEST(ClientSettingsTogether, MinAboveMaxIsRefused) {
    const Variable min("HEDDLE_MIN", "3"), max("HEDDLE_MAX", "2");
    EXPECT_THROW(check_client_settings(), Error);
}

TEST(ClientSettingsTogether, TheyTakeThePlaceOfOptions) {
    const Variable max("HEDDLE_MAX", "7"), own("HEDDLE_OWN", "0-2,9"), weight("HEDDLE_WEIGHT", "");
    ArbiterClientOptions options;
    options.max = 3;
    options.weight = 5;
    options = with_settings(options);
    EXPECT_EQ(options.max, 7);
    EXPECT_EQ(options.weight, 5) << "an empty variable says nothing";
    EXPECT_EQ(options.owned, CpuSet::parse("0-2,9"));
    EXPECT_NO_THROW(check_client_settings());
}

}  // namespace
}  // namespace heddle
