// Waiter: a flow of control that waits to be woken: a task that is paused, or a thread that sleeps.
//
// wait_for_wake() pauses the calling task where its engine can, so that its worker goes on with others;
// elsewhere the calling thread sleeps. The waiter is told to those who will wake it only when it could be
// woken.
#pragma once

#include <type_traits>

namespace heddle {

class Waiter {
  public:
    /// Any thread, once. The waiter may be gone when it returns.
    virtual void wake() noexcept = 0;

  protected:
    ~Waiter() = default;
};

/// Tells others of the waiter. False: there is nothing to wait for after all, and nobody was told. May run on
/// another stack than the waiter's; nothing of the waiter's may be touched after others were told.
struct Announcement {
    bool (*call)(void* argument, Waiter& waiter) noexcept;
    void* argument;
    bool must = false;  ///< who waits has no other way: what is kept for such is for it
};

/// Who is going to wake the waiter.
enum class Wakes : bool {
    kAnybody,
    kTimer,  ///< at a time, whatever else runs: so a task that cannot be paused may keep its thread
};

/// Returns when the waiter was woken, or `publish` has returned false. Throws kLimit where there is no memory
/// for another stack, or no thread would be left; nothing was told then. A task may go on in another thread.
void wait_for_wake(Announcement publish, Wakes by = Wakes::kAnybody);

/// The same for a function object `bool(Waiter&) noexcept`.
template <class Function>
requires(!std::is_same_v<Function, Announcement>) void wait_for_wake(const Function& publish,
                                                                     Wakes by = Wakes::kAnybody,
                                                                     bool must = false) {
    wait_for_wake(Announcement{[](void* function, Waiter& waiter) noexcept {
                                   return (*static_cast<const Function*>(function))(waiter);
                               },
                               const_cast<Function*>(&publish), must},
                  by);
}

}  // namespace heddle
