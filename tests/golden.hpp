// Golden files: what a program gives, compared with what was looked at and found right.
//
// For tests, one thread. With UPDATE_GOLDEN=1 in the environment the files are written instead of compared;
// read the difference before you commit it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace heddle::test {

inline std::string file_text(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    EXPECT_TRUE(in) << path << " cannot be read";
    return {std::istreambuf_iterator<char>(in), {}};
}

inline void expect_golden(const std::string& path, const std::string& text) {
    if (std::getenv("UPDATE_GOLDEN") != nullptr) {
        std::ofstream(path, std::ios::binary) << text;
        return;
    }
    EXPECT_EQ(file_text(path), text) << "differs from " << path << "; UPDATE_GOLDEN=1 writes it anew";
}

}  // namespace heddle::test
