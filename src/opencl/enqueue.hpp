// The commands that a program enqueues, as the layer passes them on.
#pragma once

#include "opencl/next.hpp"

namespace heddle::opencl {

/// Puts the layer's functions into the table.
void intercept_commands(cl_icd_dispatch& table);
void intercept_queries(cl_icd_dispatch& table);

}  // namespace heddle::opencl
