// Handoff: what is done for a flow of control after it was left, on the side that was switched to.
//
// The only moment at which a paused fiber may be told to others is after its registers are saved, and then it
// no longer runs and cannot tell by itself. So a switch takes the telling with it.
#pragma once

namespace heddle {

struct Handoff {
    /// Called on the stack of the side that was switched to, before that goes on: the side that was left is
    /// saved by then, and may be resumed by whoever it is told to, on any thread, before this function
    /// returns. Nothing of it may be touched after it was told: `argument` may lie on its stack only until
    /// then.
    void (*run)(void* argument) noexcept = nullptr;
    void* argument = nullptr;
};

}  // namespace heddle
