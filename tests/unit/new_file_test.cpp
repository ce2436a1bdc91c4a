// NewFile: whole or not at all, whatever others have left behind.
#include "base/new_file.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "golden.hpp"
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

}  // namespace
}  // namespace heddle::test
