#pragma once

#include <starpu.h>

#include <vector>

#include "tasks/device_choice.hpp"

namespace heddle {

/// The OpenCL devices that StarPU would have, in its order: GPUs and accelerators, and CPUs where
/// STARPU_OPENCL_ON_CPUS=1 says so. None where this StarPU, or this build, has no OpenCL.
[[nodiscard]] std::vector<starpu_driver> starpu_opencl_drivers();

/// One of those, when its driver was initialized.
[[nodiscard]] EngineDevice starpu_opencl_device(int index);

}  // namespace heddle
