// OpenCL's C interface with what heddle makes of it: objects that release themselves, and errors.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <memory>
#include <string>
#include <type_traits>

#include "heddle/device_types.hpp"

namespace heddle::devices::opencl {

/// "CL_OUT_OF_RESOURCES", or the number for a code that OpenCL 1.2 does not have.
[[nodiscard]] std::string code_name(cl_int code);

/// Throws DeviceError where the code is none of success. A device that is out of resources, or not available
/// any more, is lost.
void check(cl_int code, const std::string& device, const char* call);

struct Releaser {
    void operator()(cl_context object) const { clReleaseContext(object); }
    void operator()(cl_command_queue object) const { clReleaseCommandQueue(object); }
    void operator()(cl_program object) const { clReleaseProgram(object); }
    void operator()(cl_kernel object) const { clReleaseKernel(object); }
    void operator()(cl_mem object) const { clReleaseMemObject(object); }
    void operator()(cl_event object) const { clReleaseEvent(object); }
};
template <class Object>
using Owned = std::unique_ptr<std::remove_pointer_t<Object>, Releaser>;

using Context = Owned<cl_context>;
using Queue = Owned<cl_command_queue>;
using ClProgram = Owned<cl_program>;
using ClKernel = Owned<cl_kernel>;
using Memory = Owned<cl_mem>;
using Event = Owned<cl_event>;

}  // namespace heddle::devices::opencl
