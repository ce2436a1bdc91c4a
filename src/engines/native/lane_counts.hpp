// What Pace decides by, of the threads of a runtime: from what each counts on its lane.
#pragma once

#include "engines/native/fine_tasks.hpp"
#include "engines/native/pace.hpp"
#include "tasks/lane.hpp"

namespace heddle {

/// Of the worker with this lane.
[[nodiscard]] inline Pace::Look look_around(LaneTable& lanes, const Lane& lane, FineTasks& fine) noexcept {
    const Time now = fine.look(lanes, lane);
    Pace::Look result{
        now, lane.ran.load(std::memory_order_relaxed) - lane.inserted.load(std::memory_order_relaxed), 0,
        fine.limit()};
    const uint32_t count = lanes.size();
    for (uint32_t i = 0; i < count; ++i) {
        const Lane& one = lanes[i];
        if (&one != &lane)
            result.others +=
                one.ran.load(std::memory_order_relaxed) + one.inserted.load(std::memory_order_relaxed);
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
