// What a process leaves behind that does something again and again: threads, descriptors, memory.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>

#include "support/sanitized.hpp"
#include "support/wait_until.hpp"

namespace heddle::test {

inline size_t entries_of(const char* folder) {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

/// Does it 200 times, so that all is there that stays for the life of the process (libomp takes so many), and
/// then `times` more, which have to leave nothing. Memory that malloc and runtimes keep for later has a
/// bound, but whether it is reached early depends on who ran what; what leaks grows in each fifth.
template <class Once>
void expect_nothing_left_behind(const Once& once, int times) {
    for (int i = 0; i < 200; ++i) once();
    const size_t threads = entries_of("/proc/self/task"), descriptors = entries_of("/proc/self/fd");
    size_t least = SIZE_MAX;
    for (int fifth = 0; fifth < 5; ++fifth) {
        const size_t bytes = mallinfo2().uordblks;
        for (int i = 0; i < times / 5; ++i) once();
        const size_t now = mallinfo2().uordblks;
        least = std::min(least, kSanitized || now <= bytes ? 0 : now - bytes);
    }
    // Threads that have done all they had to may still be on their way out.
    EXPECT_TRUE(becomes_true([&] { return entries_of("/proc/self/task") <= threads; }))
        << entries_of("/proc/self/task") << " threads, of " << threads;
    EXPECT_LE(entries_of("/proc/self/fd"), descriptors);
    EXPECT_LE(least, 64 * static_cast<size_t>(times) / 5) << "bytes more after each fifth";
}

}  // namespace heddle::test
