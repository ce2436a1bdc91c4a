#include "base/file_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_folder.hpp"

namespace heddle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FileWatchTest : public ::testing::Test {
  protected:
    FileWatchTest() {
        for (const std::string& path : {one, other}) write(path);
        files.change({}, {one, other, folder.path() + "/none"});
    }
    static void write(const std::string& path) { std::ofstream(path) << "100000\n"; }
    [[nodiscard]] bool announced() const {
        pollfd ready{files.fd(), POLLIN, 0};
        return poll(&ready, 1, 0) == 1;
    }

    TemporaryFolder folder{"/tmp/heddle-watch-"};
    const std::string one = folder.path() + "/cpu.max", other = folder.path() + "/cpuset.cpus";
    FileWatch files;
};

TEST_F(FileWatchTest, WhoWasWrittenIsTold) {
    EXPECT_FALSE(announced());
    EXPECT_THAT(files.written(), IsEmpty());
    write(other);
    write(other);
    EXPECT_TRUE(announced());
    EXPECT_THAT(files.written(), ElementsAre(other));
    EXPECT_FALSE(announced());
}

TEST_F(FileWatchTest, OthersAreNotWatchedAnyLonger) {
    files.change({other}, {});
    write(other);
    EXPECT_THAT(files.written(), IsEmpty());
    files.change({}, {other});
    write(other);
    EXPECT_THAT(files.written(), ElementsAre(other));
}

TEST_F(FileWatchTest, EachOfThoseWhoWantToHearOfAFileIsCounted) {
    files.change({one}, {one, other});
    files.change({other}, {});
    write(other);
    EXPECT_THAT(files.written(), ElementsAre(other));
    files.change({other}, {one});
    write(other);
    EXPECT_THAT(files.written(), IsEmpty());
}

TEST_F(FileWatchTest, AFileThatIsMadeAnewIsWatchedWhenAskedForAgain) {
    std::filesystem::remove(one);
    EXPECT_THAT(files.written(), IsEmpty());
    write(one);
    files.change({one}, {one});
    write(one);
    EXPECT_THAT(files.written(), ElementsAre(one));
}

/// More than the system keeps: it tells that some are lost, and each may have been written.
TEST_F(FileWatchTest, WhereTheSystemLosesSomeAllAreTold) {
    size_t most = 0;
    std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> most;
    ASSERT_GT(most, 0u);
    std::ofstream first(one), second(other);
    for (size_t i = 0; i < most; ++i) (i % 2 == 0 ? first : second) << i << std::flush;
    std::filesystem::resize_file(one, 0);
    const std::vector<std::string> all = files.written();
    EXPECT_THAT(all, ElementsAre(one, other));
}

}  // namespace
}  // namespace heddle
