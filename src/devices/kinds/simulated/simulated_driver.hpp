// Devices that compute on the host and tell what it costs on a virtual clock, which goes on when their worker
// waits: runs of one worker repeat exactly.
#pragma once

#include <memory>
#include <vector>

#include "devices/driver.hpp"

namespace heddle::devices {

/// With one clock for all of them.
[[nodiscard]] std::vector<std::shared_ptr<DeviceDriver>> simulated_drivers(
    const std::vector<SimulatedDevice>& devices);

}  // namespace heddle::devices
