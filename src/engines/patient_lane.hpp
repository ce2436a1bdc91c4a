// A lane for a thread that has to have one: it needs memory once, and others will give some back.
#pragma once

#include <thread>

#include "tasks/engine.hpp"

namespace heddle {

/// The calling thread's (EngineHost::lane()), asked for until there is one.
[[nodiscard]] inline Lane& patient_lane(EngineHost& host) noexcept {
    while (true) {
        try {
            return host.lane();
        } catch (...) {
            std::this_thread::yield();
        }
    }
}

}  // namespace heddle
