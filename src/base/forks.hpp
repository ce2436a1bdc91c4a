// Whether this process is a child that was forked from the one in which something was made: a child has none
// of its parent's threads, and its locks are as they were then.
//
// Of whoever compiles it in: a plug-in counts for itself. Any thread.
#pragma once

#include <pthread.h>

#include <atomic>

namespace heddle {

/// How many forks lie between this process and the one in which this function was called first. As cheap as a
/// read; without memory to be told of forks it stays 0.
[[nodiscard]] inline unsigned forks() noexcept {
    static std::atomic<unsigned> count{0};
    static const int installed =
        ::pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1, std::memory_order_relaxed); });
    (void)installed;
    return count.load(std::memory_order_relaxed);
}

}  // namespace heddle
