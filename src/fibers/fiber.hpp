// Fiber: a flow of control with a stack of its own, which pauses and goes on where and when it is told.
//
// An engine owns them: one for the flow that each of its threads has anyway, and one for each stack on which
// it runs tasks. A switch pauses the running fiber and continues another on the same thread; a paused fiber
// may go on in any thread. It keeps its registers, its floating-point modes (float_modes.hpp) and its
// exceptions: a task may pause inside a catch block and rethrow in another thread. What belongs to the thread
// does not come along: thread_local variables, errno, the signal mask, pthread_self(). Compilers keep the
// address of such a variable over any call, so a function that uses one must not be the one, nor be inlined
// into the one, that uses it again after a pause.
//
// A fiber runs in one thread at a time, and one that runs must not be switched to. The hand-off of a switch
// (handoff.hpp) is the moment to tell others of the paused one; telling needs a release, taking an acquire.
// After fork() the child has the forking thread's fibers as they were. An exception that leaves `entry`
// terminates the program. docs/FIBERS.md says how it works and what it costs.
#pragma once

#include "base/sanitizers.hpp"
#include "fibers/context.hpp"
#include "fibers/float_modes.hpp"
#include "fibers/handoff.hpp"
#include "fibers/stack_span.hpp"

namespace heddle {

class Fiber {
  public:
    using Entry = void (*)(void* argument);

    /// The flow of the calling thread, which it continues to be.
    Fiber();

    /// A paused one. When first switched to it calls `entry`, which must leave by exit_to and never return.
    /// The stack is the caller's again when another fiber runs after exit_to, that is, in its hand-off. A
    /// fiber that was never switched to may just be destroyed, and so may one that is paused, but then what
    /// lies on its stack is not.
    Fiber(StackSpan stack, Entry entry, void* argument);
    ~Fiber() = default;
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Pauses `from`, which is the one that runs here, and continues `to`. The first thing that happens there
    /// is the hand-off, which may tell others of `from`. Returns when somebody switches to `from`, maybe in
    /// another thread.
    [[gnu::noinline]] static void switch_to(Fiber& from, Fiber& to, Handoff handoff = {}) noexcept;

    /// The same for a `from` that is never to go on. It and its stack may be destroyed in the hand-off.
    [[noreturn]] static void exit_to(Fiber& from, Fiber& to, Handoff handoff = {}) noexcept;

  private:
    friend void fiber_main(void* fiber, Handoff handoff) noexcept;

    /// What the C++ runtime knows of a thread's exceptions (Itanium C++ ABI, __cxa_eh_globals).
    struct Exceptions {
        void* caught = nullptr;
        unsigned uncaught = 0;
    };

    void leave_for(Fiber& to) noexcept;

    Context context_ = nullptr;  // null while it runs
    Exceptions exceptions_;
    FloatModes modes_;
    Entry entry_ = nullptr;
    void* argument_ = nullptr;
    [[no_unique_address]] FiberForSanitizers sanitizers_;
};

}  // namespace heddle
