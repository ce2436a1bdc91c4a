// StarPuPolicy: the scheduling policy with which StarPU runs here: what a worker of ours runs next.
//
// Tasks of our engines go to their engine (StarPuReady). Those that may run on a device, too, are StarPU's to
// place: they go through a policy of its own, dmda or the one that STARPU_SCHED names, which sees no others.
// Tasks of a program that uses StarPU beside us run when a worker has nothing else.
//
// Any thread; the functions of a worker are called by it.
#pragma once

#include <starpu.h>
#include <starpu_scheduler.h>

#include <cstdint>

namespace heddle::starpu_policy {

/// Of the process. With devices it is used for their tasks, and null where StarPU has no policy for them.
/// Throws kInvalidArgument where STARPU_SCHED names one that it does not know.
[[nodiscard]] starpu_sched_policy* of_process(bool with_devices);

/// There are tasks of a program beside us.
[[nodiscard]] bool any_stranger() noexcept;

/// Counts the tasks that StarPU has placed: a worker that has seen as many as there are, and found none for
/// itself, has none.
[[nodiscard]] uint64_t placed() noexcept;

}  // namespace heddle::starpu_policy
