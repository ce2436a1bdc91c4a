// line_needs_nobody(): whether the tasks that stand in line are run as fast without one more thread.
//
// Inline, as engines that are plug-ins need nothing of libheddle.so.
#pragma once

#include "base/clock.hpp"
#include "base/spin_pause.hpp"
#include "engines/native/pace.hpp"
#include "tasks/engine.hpp"

namespace heddle {

/// Looks for a microsecond or some how those in line are run. `fine`: tasks that take less on average are not
/// worth being handed over (FineTasks::limit()).
[[nodiscard]] inline bool line_needs_nobody(const EngineHost& host, Nanoseconds fine) noexcept {
    constexpr Nanoseconds kLook = std::chrono::microseconds(1);
    /// While there are fewer it looks again, so many times in all: some coarse tasks are soon inserted.
    constexpr uint32_t kMany = 32;
    constexpr int kMostLooks = 16;
    /// Where more stand in line than who inserts would let wait, there is something to do in any case.
    constexpr uint32_t kLong = 4'096;
    if (host.in_line() > kLong) return false;
    const SteadyClock clock;
    Time since = clock.now();
    for (int looks = 0; looks < kMostLooks; ++looks) {
        const uint64_t before = host.started_in_line();
        Time now;
        do {
            for (int i = 0; i < 4; ++i) spin_pause();
            now = clock.now();
        } while (now - since < kLook);
        const uint64_t tasks = host.started_in_line() - before;
        if (tasks == 0 || Pace::coarse(tasks, now - since, fine)) return false;
        if (host.in_line() >= kMany) return true;
        since = now;
    }
    return true;
}

}  // namespace heddle
