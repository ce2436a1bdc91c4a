#include "bench/host.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>

#include "support/child.hpp"
#include "support/temporary_folder.hpp"
#include "support/wait_until.hpp"

using heddle::ScratchFolder;
using heddle::bench::OneAtATime;

namespace {

/// Points TMPDIR elsewhere, so that no real driver is met.
class OwnTemporaryFolder : public testing::Test {
  protected:
    void SetUp() override { setenv("TMPDIR", folder_.path().c_str(), 1); }
    void TearDown() override { unsetenv("TMPDIR"); }

  private:
    ScratchFolder folder_;
};

}  // namespace

TEST(ScratchFolder, GoesWithWhatIsInIt) {
    std::filesystem::path path;
    {
        const ScratchFolder folder;
        path = folder.path();
        std::ofstream(path / "picture") << "x";
        ASSERT_TRUE(std::filesystem::exists(path / "picture"));
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

/// Whatever it left in there, or its programs in their folder for temporary files.
TEST(ScratchFolder, GoesWithADriverThatIsKilled) {
    for (const int signal : {SIGKILL, SIGINT}) {
        const heddle::test::TemporaryFolder folder;
        heddle::test::Child driver(
            {HEDDLE_BUILD_DIR "/bin/heddle", "bench", "cores.serial", "--runs", "1000"},
            {"TMPDIR=" + folder.path(), "HEDDLE_ARBITER=off"}, -1, "/dev/null");
        const auto scratch = [&] {
            for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
                if (entry.is_directory()) return entry.path();
            return std::filesystem::path();
        };
        ASSERT_TRUE(heddle::test::becomes_true([&] { return !scratch().empty(); }));
        std::ofstream(scratch() / "left") << "x";
        driver.signal(signal);
        driver.reap();
        EXPECT_TRUE(heddle::test::becomes_true([&] { return scratch().empty(); }));
    }
}

using BenchLock = OwnTemporaryFolder;

TEST_F(BenchLock, TheSecondDriverIsToldAndWaitsForTheFirst) {
    auto first = std::make_optional<OneAtATime>([] { FAIL() << "nobody else is there"; });
    std::promise<void> told;
    auto second = std::async(std::launch::async, [&] { OneAtATime lock([&] { told.set_value(); }); });
    told.get_future().wait();
    EXPECT_EQ(second.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
    first.reset();
    EXPECT_EQ(second.wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST_F(BenchLock, IsFreeAgainAfterTheDriverEnded) {
    {
        const OneAtATime lock([] { FAIL(); });
    }
    const OneAtATime again([] { FAIL() << "the first is gone"; });
}

TEST(FindInPath, FindsProgramsAndNotFolders) {
    EXPECT_TRUE(heddle::bench::find_in_path("sh").is_absolute());
    EXPECT_EQ(heddle::bench::find_in_path("no-such-program"), "");
}
