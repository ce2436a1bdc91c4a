// Where threads may run, as sched_getaffinity(2) and sched_setaffinity(2) tell and are told: for machines of
// any size.
//
// Any thread. What is set goes with the thread.
#pragma once

#include <sys/types.h>

#include "heddle/cpu_set.hpp"

namespace heddle {

/// Of the calling thread. Throws kSystem.
[[nodiscard]] CpuSet thread_affinity();
/// Of the calling thread; empty where the system does not tell, errno says why.
[[nodiscard]] CpuSet affinity_if_known();
/// Where the calling thread could run, had heddle not bound it for what it does now; null: heddle has not.
using OuterAffinity = const CpuSet* (*)() noexcept;
/// Who binds threads tells it here. One for the process: the same each time.
void tell_outer_affinity(OuterAffinity known) noexcept;
/// The same of where the process could run, while an arbiter has bound its threads.
void tell_affinity_before_fence(OuterAffinity known) noexcept;
/// Null: none has. What is told stays where it is for the life of the process.
[[nodiscard]] const CpuSet* affinity_before_fence() noexcept;
/// As thread_affinity(), but what is told by these where they have an answer, the first one first.
[[nodiscard]] CpuSet outer_affinity();
/// Binds a thread by its id, 0 for the calling one. False: the system refuses, or there is no memory to ask
/// it; errno says why.
[[nodiscard]] bool set_thread_affinity(const CpuSet& cpus, pid_t thread = 0) noexcept;

}  // namespace heddle
