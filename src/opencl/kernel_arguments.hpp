// Which buffers, images and samplers a kernel in OpenCL C has as arguments. A driver does not say, and a
// kernel that is kept back has to keep them, since a program may release them as soon as it has enqueued the
// kernel. So each argument that is set is noted, and each buffer, image, pipe and sampler as long as it
// lives: a driver tells of what kind an argument is only where the program was built for that. Any thread.
#pragma once

#include <memory>
#include <vector>

#include "opencl/next.hpp"

namespace heddle::opencl {

/// Puts the layer's functions into the table.
void intercept_kernels(cl_icd_dispatch& table);

/// Those that live. Without what was made out of objects of OpenGL, which no CPU device shares.
[[nodiscard]] std::vector<std::shared_ptr<void>> kept_arguments(cl_kernel kernel);

/// Of a kernel, since it was made.
[[nodiscard]] size_t count_of_set_arguments(cl_kernel kernel);

}  // namespace heddle::opencl
