// Kernels on devices that another runtime has opened (DeviceKind::build_on, run_on).
#pragma once

#include "devices/driver.hpp"

namespace heddle::devices::opencl {

[[nodiscard]] std::shared_ptr<DriverProgram> build_on(const EngineDevice& device,
                                                      const ProgramSource& source);
void run_on(const EngineDevice& device, DriverProgram& program, const std::string& kernel,
            std::span<const ForeignArgument> arguments, const LaunchShape& shape);

}  // namespace heddle::devices::opencl
