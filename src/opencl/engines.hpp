// The runtimes that native kernels are written for, as heddle's engines. Any thread.
#pragma once

#include "heddle/offload.hpp"
#include "opencl/next.hpp"

namespace heddle::opencl {

/// Those that this process has, as bits of CL_DEVICE_EXECUTION_CAPABILITIES, which are those of their types.
[[nodiscard]] cl_device_exec_capabilities engine_bits();

/// Where kernels of a type run; it is one bit of engine_bits(). Starts the engine for the first one, for
/// good. Throws heddle::Error.
[[nodiscard]] Offload& offload_for(cl_bitfield type);

}  // namespace heddle::opencl
