// Where the user's own arbiter is looked for.
#include "cores/arbiter_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "support/temporary_folder.hpp"

namespace heddle {
namespace {

/// The tests' own HEDDLE_ARBITER is back afterwards.
class ArbiterPath : public testing::Test {
  protected:
    void SetUp() override {
        if (access(HEDDLE_SYSTEM_SOCKET, F_OK) == 0) GTEST_SKIP() << "skipped: there is one of all users";
        ::unsetenv("HEDDLE_ARBITER");
    }
    void TearDown() override {
        ::unsetenv("XDG_RUNTIME_DIR");
        if (before_ != nullptr) ::setenv("HEDDLE_ARBITER", was_.c_str(), 1);
    }
    static std::string path() {
        std::array<char, HEDDLE_SOCKET_PATH_BYTES> path{};
        std::array<char, HEDDLE_PROBLEM_BYTES> problem{};
        const heddle_arbiter_place place = heddle_arbiter_path(path.data(), problem.data());
        return place == HEDDLE_ARBITER_USER ? path.data() : problem.data();
    }

    test::TemporaryFolder folder_;

  private:
    const char* before_ = std::getenv("HEDDLE_ARBITER");
    const std::string was_ = before_ != nullptr ? before_ : "";
};

TEST_F(ArbiterPath, IsInTheFolderOfTheSession) {
    ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
    EXPECT_EQ(path(), folder_.path() + "/heddle/arbiter.sock");
}

/// As a job has it that was sent from another machine, and who has become another user; a service has none.
TEST_F(ArbiterPath, IsTheSameWithAFolderThatIsNotTheUsersAndWithNone) {
    ::unsetenv("XDG_RUNTIME_DIR");
    const std::string usual = path();
    EXPECT_THAT(usual, testing::AnyOf("/run/user/" + std::to_string(geteuid()) + "/heddle/arbiter.sock",
                                      "/tmp/heddle-" + std::to_string(geteuid()) + "/arbiter.sock"));
    ::setenv("XDG_RUNTIME_DIR", (folder_.path() + "/gone").c_str(), 1);
    EXPECT_EQ(path(), usual);
    if (geteuid() != 0) GTEST_SKIP() << "skipped: only root can make a folder of somebody else";
    ASSERT_EQ(::chown(folder_.path().c_str(), 65534, 65534), 0);
    ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
    EXPECT_EQ(path(), usual);
}

TEST_F(ArbiterPath, IsNotInWhatIsNoFolder) {
    ::setenv("XDG_RUNTIME_DIR", "/dev/null", 1);
    EXPECT_THAT(path(), testing::HasSubstr("cannot be used"));
}

}  // namespace
}  // namespace heddle
