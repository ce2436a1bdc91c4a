// The trace that a process of its own writes: HEDDLE_TRACE is read when a process starts to trace.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "support/temporary_folder.hpp"
#include "trace/reader.hpp"
#include "trace/timeline.hpp"

namespace heddle::test {

/// Of one that exits with what `run` gives, which is to be 0.
[[nodiscard]] inline trace::Timeline trace_of(int (*run)()) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    // The other process comes here, too, and finds the variable: the folder is this one's.
    std::optional<TemporaryFolder> folder;
    if (std::getenv("HEDDLE_TRACE") == nullptr) {
        folder.emplace();
        ::setenv("HEDDLE_TRACE", (folder->path() + "/trace.jsonl").c_str(), 1);
    }
    const std::string path = std::getenv("HEDDLE_TRACE");
    EXPECT_EXIT(std::exit(run()), ::testing::ExitedWithCode(0), "");
    if (folder.has_value()) ::unsetenv("HEDDLE_TRACE");
    return trace::Timeline(trace::read_file(path));
}

}  // namespace heddle::test
