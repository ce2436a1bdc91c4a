// Progress: how many of an algorithm's tasks have ended, for whoever shows it.
//
// Written by the tasks, read by any thread; the caller's, who keeps it until the sequence was waited for.
#pragma once

#include <atomic>
#include <cstddef>

namespace heddle::algebra {

struct Progress {
    // Relaxed: they are looked at, and nothing is concluded from them.
    std::atomic<size_t> inserted{0};
    std::atomic<size_t> ended{0};
};

}  // namespace heddle::algebra
