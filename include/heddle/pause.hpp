// BlockCondition and polling services: a task that waits without keeping its worker (seed 000 section 2.2.3).
//
// A library that starts something and has to wait for it blocks on a condition, and whoever sees the end of
// it signals. The task is paused: its worker runs other tasks, and the task goes on later, perhaps in another
// thread; so it must not wait inside a parallel region or algorithm of another runtime that it uses. Outside
// of tasks the thread sleeps.
// Any thread may signal, at any time, and register services. Nothing outlives the process; after fork(2) a
// child must not use its parent's.
#pragma once

#include <atomic>
#include <string>

#include "heddle/export.hpp"

namespace heddle {

class Runtime;
class Waiter;

/// For one block() and one signal(), in any order; after both it may be used again.
class HEDDLE_API BlockCondition {
  public:
    BlockCondition() = default;
    /// Nobody may be in block().
    ~BlockCondition() = default;
    BlockCondition(const BlockCondition&) = delete;
    BlockCondition& operator=(const BlockCondition&) = delete;

    /// Returns when signal() has been called, before or meanwhile. Throws kInvalidArgument where another task
    /// is blocked here, kLimit where there is no memory for another stack: the condition is as before.
    void block();
    /// The same for who cannot leave before it was signalled: where there is no memory for another stack,
    /// other tasks run on top of the calling one meanwhile. Throws kInvalidArgument alone.
    void block_until_signalled();
    /// Returns at once; what is blocked will go on. Throws kInvalidArgument where it was signalled already
    /// and nobody has blocked since. The condition may be gone when it returns.
    void signal();

  private:
    /// Null, a waiter, or a mark that it was signalled. Acquire and release: what was done before the signal
    /// is seen after the block.
    std::atomic<Waiter*> state_{nullptr};
};

/// Called again and again by workers that have nothing else to do, never twice at once for the same data.
/// True: it has done its work and is not called any more. Must not block and must not throw: the
/// waits of a Sequence and a Runtime, and switch_engine(), throw kInvalidArgument in it.
using PollingService = bool (*)(void* data);

/// The same service may be registered with several data; each pair is a registration of its own. Throws
/// kInvalidArgument for a pair that is registered already. `name` is for people.
HEDDLE_API void register_polling_service(Runtime& runtime, const std::string& name, PollingService service,
                                         void* data);
/// When it returns, the service is not being called with these data and never will be. Throws
/// kInvalidArgument for a pair that is not registered, and out of the service itself, which returns true
/// instead.
HEDDLE_API void unregister_polling_service(Runtime& runtime, PollingService service, void* data);

}  // namespace heddle
