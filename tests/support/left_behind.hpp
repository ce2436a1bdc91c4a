// What a process leaves behind that does something again and again: threads, descriptors, memory.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <filesystem>
#include <iterator>

#include "support/sanitized.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {

inline size_t entries_of(const char* folder) {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

/// Does it 50 times, so that all is there that stays for the life of the process, and then `times` more,
/// which have to leave nothing.
template <class Once>
void expect_nothing_left_behind(const Once& once, int times) {
    for (int i = 0; i < 50; ++i) once();
    const size_t threads = entries_of("/proc/self/task"), descriptors = entries_of("/proc/self/fd");
    // A runtime's pool may fill up to its bound meanwhile; what is left behind each time is so in each
    // series.
    constexpr int kSeries = 3;
    bool grows = true;
    for (int series = 0; series < kSeries && grows; ++series) {
        const size_t bytes = mallinfo2().uordblks;
        for (int i = 0; i < times; ++i) once();
        grows = mallinfo2().uordblks > bytes + 64 * 1024;
    }
    // Threads that have done all they had to may still be on their way out.
    EXPECT_TRUE(
        becomes_true([&] { return entries_of("/proc/self/task") <= threads; }, std::chrono::seconds(20)))
        << entries_of("/proc/self/task") << " threads, of " << threads;
    EXPECT_LE(entries_of("/proc/self/fd"), descriptors);
    if (!kSanitized) {
        EXPECT_FALSE(grows) << mallinfo2().uordblks << " bytes by now";
    }
}

}  // namespace heddle::test
