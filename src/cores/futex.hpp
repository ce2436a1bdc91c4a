// Sleeping on words shared with other processes, and waking who sleeps there (futex(2)).
//
// Waking and sleeping work on read-only mappings too. No state; any thread. Waits may end for no reason: the
// caller looks again.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "base/clock.hpp"

namespace heddle {

inline void futex_wake(const std::atomic<uint32_t>& word, int count) noexcept {
    (void)::syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
}

inline timespec timespec_of(Nanoseconds time) noexcept {
    return {static_cast<time_t>(time.count() / 1'000'000'000),
            static_cast<long>(time.count() % 1'000'000'000)};
}

/// Sleeps while the word has this value, until `until` (Time::max(): for ever).
inline void futex_wait(const std::atomic<uint32_t>& word, uint32_t value, Time until) noexcept {
    const timespec limit = timespec_of(until.time_since_epoch());
    (void)::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, value, until == Time::max() ? nullptr : &limit,
                    nullptr, FUTEX_BITSET_MATCH_ANY);
}

/// Sleeps while both words have these values. Where the kernel has no futex_waitv (before 5.16), a
/// millisecond at a time on the first.
inline void futex_wait_either(const std::atomic<uint32_t>& first, uint32_t first_value,
                              const std::atomic<uint32_t>& second, uint32_t second_value,
                              Time until) noexcept {
    struct Waitv {  // struct futex_waitv
        uint64_t value;
        uint64_t address;
        uint32_t flags;
        uint32_t reserved;
    };
    constexpr long kWaitv = 449;
    constexpr uint32_t kSize32 = 2;  // FUTEX_32
    const Waitv waiters[2] = {{first_value, reinterpret_cast<uintptr_t>(&first), kSize32, 0},
                              {second_value, reinterpret_cast<uintptr_t>(&second), kSize32, 0}};
    const timespec limit = timespec_of(until.time_since_epoch());
    if (::syscall(kWaitv, waiters, 2, 0, until == Time::max() ? nullptr : &limit, CLOCK_MONOTONIC) < 0 &&
        errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT)  // the kernel, or a filter, does not know it
        futex_wait(first, first_value,
                   std::min(until, std::chrono::time_point_cast<Nanoseconds>(
                                       std::chrono::steady_clock::now() + std::chrono::milliseconds(1))));
}

}  // namespace heddle
