// parallelme::Device (seed 004) on a device of heddle.
#pragma once

#include <memory>
#include <stdexcept>

#include "../../device.hpp"
#include "../parallelme/Java.hpp"

namespace parallelme {

class DeviceConstructionError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};
class DeviceFinishError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Device {
  public:
    enum Type { CPU, GPU, Accelerator };

    explicit Device(const heddle::devices::Device& device) : device_(device) {}
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    Type type() const { return static_cast<Type>(device_.type()); }
    unsigned id() const { return device_.index(); }
    /// heddle's own.
    const heddle::devices::Device& heddle_device() const { return device_; }

  private:
    const heddle::devices::Device device_;
};

using DevicePtr = std::shared_ptr<Device>;

}  // namespace parallelme
