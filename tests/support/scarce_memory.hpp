// Memory that runs out on demand, for the thread that says so or for all. The operator new of memory_tests,
// which asks it, is in tests/memory/memory_test.cpp.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

/// What there is to be had by the calling thread.
struct Memory {
    bool counts = false;           // an allocation is of what is tested
    long allocations = 0;          // so far
    long exhausted_after = -1;     // allocations; -1: never
    bool exhausted = false;        // from here on only what is given back
    long left = 0;                 // of that, in bytes
    long used = 0, most_used = 0;  // bytes since the last reset

    bool gives(size_t bytes) {
        if (!counts) return true;
        ++allocations;
        if (exhausted_after >= 0 && allocations > exhausted_after) exhausted = true;
        return !exhausted || static_cast<long>(bytes) + 64 <= left;
    }
    void took(void* block) {
        if (!counts) return;
        const auto bytes = static_cast<long>(::malloc_usable_size(block));
        used += bytes;
        most_used = std::max(most_used, used);
        if (exhausted) left -= bytes;
    }
    void gave_back(void* block) {
        if (!counts || block == nullptr) return;
        const auto bytes = static_cast<long>(::malloc_usable_size(block));
        used -= bytes;
        if (exhausted) left += bytes;
    }
};
extern thread_local Memory memory;

/// What all threads together can have: so many allocations from limit() to lift(), and none after them.
class MemoryOfAll {
  public:
    void limit(long allocations) {
        left_ = allocations;
        limited_ = true;
    }
    /// True: there was enough.
    bool lift() {
        limited_ = false;
        return left_ > 0;
    }
    bool gives() {
        if (!limited_.load(std::memory_order_relaxed)) return true;
        return left_.load(std::memory_order_relaxed) > 0 && left_.fetch_sub(1) > 0;
    }

  private:
    std::atomic<bool> limited_{false};
    std::atomic<long> left_{0};
};
inline MemoryOfAll memory_of_all;
