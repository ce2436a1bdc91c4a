// What a process leaves behind that does something again and again: threads, descriptors, memory.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

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
/// bound, but whether it is reached early depends on who ran what: what leaks grows in each of five rounds.
template <class Once>
void expect_nothing_left_behind(const Once& once, int times) {
    for (int i = 0; i < 200; ++i) once();
    const size_t threads = entries_of("/proc/self/task"), descriptors = entries_of("/proc/self/fd");
    size_t more = SIZE_MAX;
    for (int round = 0; round < 5 && more > 64 * 1024; ++round) {
        const size_t bytes = mallinfo2().uordblks;
        for (int i = 0; i < times; ++i) once();
        const size_t now = mallinfo2().uordblks;
        more = kSanitized || now <= bytes ? 0 : now - bytes;
    }
    // Threads that have done all they had to may still be on their way out.
    EXPECT_TRUE(becomes_true([&] { return entries_of("/proc/self/task") <= threads; }))
        << entries_of("/proc/self/task") << " threads, of " << threads;
    EXPECT_LE(entries_of("/proc/self/fd"), descriptors);
    EXPECT_LE(more, 64 * 1024) << "bytes more in the last round";
}

}  // namespace heddle::test
