// How a device's CPUs are divided: what clCreateSubDevices is asked for, as sets of CPUs.
#pragma once

#include <vector>

#include "heddle/cpu_set.hpp"
#include "heddle/machine.hpp"
#include "opencl/next.hpp"

namespace heddle::opencl {

struct Partition {
    cl_int code = CL_SUCCESS;  ///< as clCreateSubDevices answers
    std::vector<CpuSet> parts;
};

/// Of these CPUs of the machine; the properties end with 0. Compute unit i is the i-th CPU.
[[nodiscard]] Partition partition(const CpuSet& cpus, const Machine& machine,
                                  const cl_device_partition_property* properties);

}  // namespace heddle::opencl
