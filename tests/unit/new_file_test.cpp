// NewFile: whole or not at all, whatever others have left behind.
#include "base/new_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/os.hpp"
#include "golden.hpp"
#include "heddle/error.hpp"
#include "support/temporary_folder.hpp"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;

void write(NewFile& file, std::string_view text) {
    file.write(std::as_bytes(std::span(text)));
}

size_t count_in(const std::string& folder) {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(NewFileTest, HasItsNameOnceItIsKept) {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/data";
    std::string before;
    for (const char* text : {"warp", "weft"}) {
        NewFile file(path);
        write(file, text);
        EXPECT_EQ(fs::exists(path) ? file_text(path) : "", before);
        file.keep();
        EXPECT_EQ(file_text(path), text);
        EXPECT_EQ(count_in(folder.path()), 1U);
        before = text;
    }
    {
        NewFile file(path);
        write(file, "neither");
    }
    EXPECT_EQ(file_text(path), "weft");
    EXPECT_EQ(count_in(folder.path()), 1U);
}

TEST(NewFileTest, ACheckLeavesNothingAndOpensNoPipe) {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/data", pipe = folder.path() + "/pipe";
    NewFile::check(path);
    EXPECT_EQ(count_in(folder.path()), 0U);
    std::ofstream(path) << "warp";
    NewFile::check(path);
    EXPECT_EQ(file_text(path), "warp");
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    NewFile::check(pipe);  // would wait for a reader
    EXPECT_EQ(count_in(folder.path()), 2U);
    EXPECT_THROW(NewFile::check(folder.path() + "/no/such"), Error);
}

/// As of a process that had this one's number and was killed.
TEST(NewFileTest, WhatAKilledWriterHasLeftIsInNobodysWay) {
    constexpr size_t kLeft = 1000;
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/data";
    for (size_t i = 0; i < kLeft; ++i) std::ofstream(fmt::format("{}.{}-{}.new", path, ::getpid(), i)) << "x";
    NewFile file(path);
    write(file, "warp");
    file.keep();
    EXPECT_EQ(file_text(path), "warp");
    EXPECT_EQ(count_in(folder.path()), kLeft + 1);
}

TEST(NewFileTest, KeepsTheModeOfTheOlderOne) {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/data";
    std::ofstream(path) << "warp";
    for (const mode_t mode : {0600U, 0666U, 0640U}) {
        ASSERT_EQ(::chmod(path.c_str(), mode), 0);
        NewFile file(path);
        write(file, "weft");
        file.keep();
        struct stat is {};
        ASSERT_EQ(::stat(path.c_str(), &is), 0);
        EXPECT_EQ(is.st_mode & 0777U, mode);
    }
}

TEST(NewFileTest, LinksStayAndLeadToTheNewOne) {
    const TemporaryFolder folder;
    const std::string link = folder.path() + "/link";
    fs::create_directory(folder.path() + "/far");
    fs::create_symlink("far/next", link);
    fs::create_symlink("data", folder.path() + "/far/next");
    for (const char* text : {"to a file that was not there", "to one that was"}) {
        NewFile file(link);
        write(file, text);
        file.keep();
        EXPECT_TRUE(fs::is_symlink(link));
        EXPECT_TRUE(fs::is_symlink(folder.path() + "/far/next"));
        EXPECT_EQ(file_text(folder.path() + "/far/data"), text);
        EXPECT_EQ(count_in(folder.path() + "/far"), 2U);
    }
    const std::string circle = folder.path() + "/circle";
    fs::create_symlink("circle", circle);
    EXPECT_THROW(NewFile{circle}, Error);
}

TEST(NewFileTest, APipeStaysOneAndGetsTheBytes) {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/pipe";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const Descriptor reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    {
        NewFile file(path);
        write(file, "warp");
        file.keep();
    }
    char got[8] = {};
    EXPECT_EQ(::read(reader.get(), got, sizeof got), 4);
    EXPECT_STREQ(got, "warp");
    EXPECT_TRUE(fs::is_fifo(path));
    EXPECT_EQ(count_in(folder.path()), 1U);
    EXPECT_THROW(NewFile{folder.path()}, Error);
}

}  // namespace
}  // namespace heddle::test
