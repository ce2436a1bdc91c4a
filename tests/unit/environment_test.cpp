#include "base/environment.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace heddle {
namespace {

using testing::StrEq;

constexpr const char* kName = "HEDDLE_ENVIRONMENT_TEST";

TEST(Environment, AVariableIsSetAndReplacedAndUnset) {
    set_variable(kName, "1");
    EXPECT_THAT(std::getenv(kName), StrEq("1"));
    set_variable(kName, "");
    EXPECT_THAT(std::getenv(kName), StrEq(""));
    unset_variable(kName);
    EXPECT_EQ(std::getenv(kName), nullptr);
}

TEST(Environment, OneWhoseNameBeginsTheSameIsAnother) {
    set_variable(kName, "1");
    set_variable(std::string(kName) + "_2", "2");
    unset_variable(kName);
    EXPECT_EQ(std::getenv(kName), nullptr);
    EXPECT_THAT(std::getenv("HEDDLE_ENVIRONMENT_TEST_2"), StrEq("2"));
    unset_variable(std::string(kName) + "_2");
}

TEST(Environment, WhatSetenvHasSetIsKept) {
    ASSERT_EQ(::setenv(kName, "1", 1), 0);
    keep_variables();
    EXPECT_THAT(std::getenv(kName), StrEq("1"));
    ASSERT_EQ(::setenv(kName, "2", 1), 0);
    EXPECT_THAT(std::getenv(kName), StrEq("2"));
    ASSERT_EQ(::unsetenv(kName), 0);
    EXPECT_EQ(std::getenv(kName), nullptr);
}

TEST(Environment, WhoReadsMeanwhileFindsWhatIsThere) {
    set_variable(kName, "there");
    std::atomic<bool> end{false};
    std::atomic<int> reads{0}, missed{0};
    {
        std::vector<std::jthread> readers;
        for (int i = 0; i < 2; ++i)
            readers.emplace_back([&] {
                do {
                    const char* const found = std::getenv(kName);
                    if (found == nullptr || found != std::string("there")) ++missed;
                    ++reads;
                } while (!end);
            });
        for (int i = 0; i < 2'000 || reads < 100; ++i) {
            set_variable("HEDDLE_ENVIRONMENT_TEST_OTHER", std::to_string(i));
            unset_variable("HEDDLE_ENVIRONMENT_TEST_OTHER");
        }
        end = true;
    }
    EXPECT_EQ(missed, 0);
    unset_variable(kName);
}

/// What setenv() has made is freed by the next setenv(): nobody goes through it any more by then.
TEST(Environment, WhatSetenvFreesIsNotWhatIsReadOnceItIsKept) {
    ASSERT_EQ(::setenv(kName, "1", 1), 0);
    const char* const* const of_setenv = environ;
    keep_variables();
    EXPECT_NE(environ, of_setenv);
    ASSERT_EQ(::unsetenv(kName), 0);
}

}  // namespace
}  // namespace heddle
