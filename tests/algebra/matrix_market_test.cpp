// matrix_market/good/*.mtx are read, each with what it says beside it in NAME.txt; of bad/*.mtx each is
// refused with the text on its comment line "% refused: ...".
#include "algebra/matrix_market.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "algebra/test_matrices.hpp"
#include "golden.hpp"
#include "heddle/error.hpp"

namespace heddle::algebra {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

const fs::path kFolder = HEDDLE_TEST_DATA "/algebra/matrix_market";

DenseMatrix read(const std::string& text, size_t max_elements = 10'000) {
    std::istringstream in(text);
    return read_matrix_market(in, "a.mtx", {max_elements});
}

std::string as_text(const DenseMatrix& a) {
    std::string text;
    for (size_t i = 0; i < a.rows(); ++i)
        for (size_t j = 0; j < a.columns(); ++j)
            text += fmt::format("{}{}", a(i, j), j + 1 == a.columns() ? "\n" : " ");
    return text;
}

std::vector<fs::path> files(const char* folder) {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(kFolder / folder))
        if (entry.path().extension() == ".mtx") all.push_back(entry.path());
    EXPECT_FALSE(all.empty());
    return all;
}

TEST(MatrixMarketTest, GoodFilesAreRead) {
    for (fs::path file : files("good")) {
        SCOPED_TRACE(file);
        const DenseMatrix a = read_matrix_market_file(file);
        test::expect_golden(file.replace_extension(".txt"), as_text(a));
    }
}

TEST(MatrixMarketTest, BadFilesAreRefusedWithFileLineAndReason) {
    constexpr std::string_view kMark = "% refused: ";
    for (const fs::path& file : files("bad")) {
        const std::string text = test::file_text(file);
        const size_t mark = text.find(kMark), begin = mark + kMark.size();
        ASSERT_NE(mark, std::string::npos) << file;
        const std::string reason = text.substr(begin, text.find('\n', begin) - begin);
        EXPECT_THAT([&] { (void)read_matrix_market_file(file, {10'000}); },
                    ThrowsMessage<Error>(HasSubstr(file.string() + ":" + reason)));
    }
}

TEST(MatrixMarketTest, WhatIsWrittenReadsBackExactly) {
    DenseMatrix a = test::waves(7, 5);
    a(0, 0) = 5e-324, a(1, 0) = 1.7976931348623157e308, a(2, 0) = -0.0, a(3, 0) = 1e22;
    std::ostringstream out;
    write_matrix_market(out, a.view());
    EXPECT_THAT(out.str(), testing::StartsWith("%%MatrixMarket matrix array real general\n7 5\n5e-324\n"));
    const DenseMatrix again = read(out.str());
    ASSERT_EQ(again.rows(), 7u);
    for (size_t j = 0; j < 5; ++j)
        for (size_t i = 0; i < 7; ++i) EXPECT_EQ(a(i, j), again(i, j));
}

TEST(MatrixMarketTest, FilesWithoutALastNewlineAndEmptyOnes) {
    EXPECT_EQ(as_text(read("%%MatrixMarket matrix array real general\n1 1\n2.5")), "2.5\n");
    EXPECT_THAT([] { (void)read(""); }, ThrowsMessage<Error>(HasSubstr("a.mtx:1: the file is empty")));
    EXPECT_THAT([] { (void)read("\n"); },
                ThrowsMessage<Error>(HasSubstr("a.mtx:1: this is no Matrix Market")));
}

TEST(MatrixMarketTest, LongLinesAreRefused) {
    const std::string header = "%%MatrixMarket matrix array real general\n";
    EXPECT_EQ(as_text(read(header + "%" + std::string(1023, 'x') + "\n1 1\n4\n")), "4\n");
    EXPECT_THAT([&] { (void)read(header + "%" + std::string(1024, 'x') + "\n1 1\n4\n"); },
                ThrowsMessage<Error>(HasSubstr("a.mtx:2: the line is longer than 1024 letters")));
    EXPECT_THAT([&] { (void)read(header + std::string(1 << 20, '7')); },
                ThrowsMessage<Error>(HasSubstr("a.mtx:2: the line is longer")));
}

TEST(MatrixMarketTest, FilesThatCannotBeReadSaySo) {
    EXPECT_THAT([] { (void)read_matrix_market_file("no/such.mtx"); },
                ThrowsMessage<Error>(HasSubstr("no/such.mtx: it cannot be read: No such file")));
    EXPECT_THAT([] { (void)read_matrix_market_file("/"); },
                ThrowsMessage<Error>(HasSubstr("/: it cannot be read: Is a directory")));
}

}  // namespace
}  // namespace heddle::algebra
