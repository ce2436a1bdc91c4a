// Waiting inside tasks: for a time, and for file descriptors. A task that waits costs its stack, not a
// worker.
//
//     heddle::sleep_for(10ms);
//     heddle::wait_readable(socket);                               // then read() does not block
//     if (wait_readable(socket, now + 1s) == Readiness::kTimeout)  // with a deadline
//
// The worker of such a task goes on with others. Outside of tasks the calling thread sleeps. Any thread and
// any task may call these, many at once for one descriptor too; each is woken. How late a task goes on
// depends on what else its workers have to do. One sleeping thread for each runtime, made with the first such
// wait, wakes all of its tasks.
//
// Other waits of tasks: heddle/pause.hpp (whatever can be signalled or polled), Sequence::wait(), data,
// heddle/mpi.hpp. Nothing outlives the process; after fork(2) a child must not use its parent's.
#pragma once

#include <chrono>

#include "heddle/export.hpp"

namespace heddle {

/// A point on the monotonic clock, which no change of the time of day moves.
using Deadline = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

/// Returns at `time`, or at once where that has passed. Throws kInvalidArgument for Deadline::max(), which
/// never comes; kLimit where the system has no descriptor, thread or memory for it.
HEDDLE_API void sleep_until(Deadline time);
/// The same from now on. Zero or less: returns at once.
HEDDLE_API void sleep_for(std::chrono::nanoseconds duration);

enum class Readiness {
    kReady,    ///< reading, or writing, would not block: it may also find an end or an error
    kTimeout,  ///< the deadline came first
};

/// Returns when the descriptor can be read from, or written to, without blocking; at once for files, which
/// always can. Throws kInvalidArgument for one that is not open, or is closed meanwhile (found out within a
/// tenth of a second; shutdown(2) of a socket is seen at once), and as BlockCondition::block(); kLimit and
/// kSystem where epoll(7) refuses.
HEDDLE_API void wait_readable(int fd);
HEDDLE_API void wait_writable(int fd);
/// The same until a deadline at most.
[[nodiscard]] HEDDLE_API Readiness wait_readable(int fd, Deadline deadline);
[[nodiscard]] HEDDLE_API Readiness wait_writable(int fd, Deadline deadline);

}  // namespace heddle
