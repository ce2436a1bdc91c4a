// Contexts and queues keep the sub-devices that they were made for, as the standard says: a program may
// release a device as soon as it has those, and its CPUs and threads are nobody else's until they have gone,
// too.
#pragma once

#include "opencl/next.hpp"

namespace heddle::opencl {

void intercept_contexts_and_queues(cl_icd_dispatch& table);

}  // namespace heddle::opencl
