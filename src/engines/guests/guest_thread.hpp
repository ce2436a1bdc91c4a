// What a thread is in a GuestEngine.
#pragma once

#include "engines/guests/guest_engine.hpp"
#include "engines/native/pace.hpp"

namespace heddle {

/// In the engine with that id.
struct GuestEngine::Here {
    uint64_t engine = 0;
    Seats::Seat* seat = nullptr;
    bool substitute = false;  ///< a thread of the program's
    int depth = 0;            ///< tasks of the runtime's on its stack
    int left = 0;             ///< so many tasks until something else has its turn
    int nested = 0;           ///< calls of help() in tasks
    bool of_use = false;      ///< it has a part in what stands in line
    bool is_to_nap = false;   ///< others run what there is as fast without it
    int to_look = 0;          ///< so many tasks before it looks whether it is of use
    /// Of the runtime's, where the innermost flow was entered: in any other one that flow cannot be left.
    uintptr_t construct = 0;
    Pace pace{};
    FineTasks::Watch watch{};
};

}  // namespace heddle
