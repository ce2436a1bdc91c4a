// What the standard refuses in the call, of commands that the layer keeps from the driver, which would say so
// too late. CL_SUCCESS where it finds nothing. Any thread.
#pragma once

#include <span>

#include "opencl/next.hpp"

namespace heddle::opencl {

/// Null for what is none.
[[nodiscard]] cl_context context_of(cl_mem object);

/// Of a wait list, for a command of this context.
[[nodiscard]] cl_int check_events(std::span<const cl_event> events, cl_context context);
/// A read or a write of a part of a buffer, to or from `host`; `closed` is the flag of buffers which the host
/// may not use so.
[[nodiscard]] cl_int check_transfer(cl_command_queue queue, cl_mem buffer, cl_mem_flags closed, size_t offset,
                                    size_t size, const void* host);
[[nodiscard]] cl_int check_copy(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
                                size_t to_offset, size_t size);
/// With its arguments; `group` may be null.
[[nodiscard]] cl_int check_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                  const size_t* work, const size_t* group);

}  // namespace heddle::opencl
