// Kernels that are functions, each for the runtime of its type.
#pragma once

#include <span>

#include "heddle/compat/CL/cl_heddle.h"
#include "opencl/next.hpp"

namespace heddle::opencl {

/// What clEnqueueNativeKernelWithType gets.
struct NativeCall {
    void(CL_CALLBACK* function)(void*) = nullptr;
    const void* args = nullptr;
    size_t bytes = 0;
    std::span<const cl_mem> memory;
    const void** places = nullptr;
    cl_native_kernel_type type = 0;
};

/// As the standard's clEnqueueNativeKernel answers; CL_INVALID_OPERATION where the device has no such type.
[[nodiscard]] cl_int enqueue_native(cl_command_queue queue, const NativeCall& call,
                                    std::span<const cl_event> after, cl_event* event);

/// CL_INVALID_VALUE where no kernel runs with these arguments.
[[nodiscard]] cl_int set_native_status(const void* args, cl_int status);

}  // namespace heddle::opencl
