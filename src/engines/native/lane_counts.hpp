// What Pace decides by, of the threads of a runtime: from what each counts on its lane.
#pragma once

#include "engines/native/fine_tasks.hpp"
#include "engines/native/pace.hpp"
#include "tasks/lane.hpp"

namespace heddle {

/// What the worker with the lane `own` sees now. Times a line for `fine` on the way.
[[nodiscard]] inline Pace::Look look_around(LaneTable& lanes, const Lane& own, FineTasks& fine,
                                            FineTasks::Watch& watch) noexcept {
    const Time now = fine.time_a_line(lanes, own, watch);
    Pace::Look result{now,
                      own.ran.load(std::memory_order_relaxed) - own.inserted.load(std::memory_order_relaxed),
                      0, fine.limit()};
    const uint32_t count = lanes.size();
    for (uint32_t i = 0; i < count; ++i) {
        if (&lanes[i] == &own) continue;
        const uint64_t tasks = FineTasks::count_of(lanes[i]);
        result.others += tasks;
        if (i == watch.lane % count) watch.seen = tasks;
    }
    return result;
}

/// Tasks that all threads of a runtime have run.
[[nodiscard]] inline uint64_t ran_in(LaneTable& lanes) noexcept {
    uint64_t ran = 0;
    const uint32_t count = lanes.size();
    for (uint32_t i = 0; i < count; ++i) ran += lanes[i].ran.load(std::memory_order_relaxed);
    return ran;
}

}  // namespace heddle
