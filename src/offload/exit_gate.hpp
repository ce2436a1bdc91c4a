// ExitGate: holds the end of the process up while kernels that were told to have ended leave their runtime.
//
// A kernel tells that it has ended while its crew is still inside of its engine's runtime. A program that has
// waited for it may then return from main(), and what is destroyed at exit is that runtime's, too: oneTBB's
// limits, say, which the crew is about to lower. So whoever is between the two holds the end up, which takes
// some microseconds, and a second at most. Kernels that still run do not. One for the process; any thread.
#pragma once

namespace heddle {

class ExitGate {
  public:
    /// The engine's libraries are loaded: what they destroy at exit comes after the wait here. For each
    /// engine, whose address is enough of a name.
    static void watch(const void* engine) noexcept;
    /// Before a kernel tells that it has ended, and when its crew has left or goes on with another.
    static void hold_up() noexcept;
    static void let_go() noexcept;
};

}  // namespace heddle
