// How kernels that use oneTBB run (tasks/kernel_crew.hpp): in an arena of their own, whose threads are bound
// while they are in it.
#pragma once

#include "tasks/kernel_crew.hpp"

namespace heddle {

extern const KernelRunner kTbbKernels;

}  // namespace heddle
