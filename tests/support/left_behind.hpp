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
    const size_t bytes = mallinfo2().uordblks;
    const auto are_left = [bytes] { return mallinfo2().uordblks > bytes + 64 * 1024; };
    for (int i = 0; i < times; ++i) once();
    // What a runtime keeps for the next time goes up and down; what is left behind stays.
    for (int i = 0; i < 200 && are_left(); ++i) once();
    // Threads that have done all they had to may still be on their way out.
    EXPECT_TRUE(
        becomes_true([&] { return entries_of("/proc/self/task") <= threads; }, std::chrono::seconds(20)))
        << entries_of("/proc/self/task") << " threads, of " << threads;
    EXPECT_LE(entries_of("/proc/self/fd"), descriptors);
    if (!kSanitized) {
        EXPECT_FALSE(are_left()) << mallinfo2().uordblks << " bytes, of " << bytes;
    }
}

}  // namespace heddle::test
