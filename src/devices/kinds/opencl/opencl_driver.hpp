// A device of OpenCL as a DeviceDriver, and what OpenCL tells of devices.
#pragma once

#include <memory>
#include <string>

#include "devices/driver.hpp"
#include "devices/kinds/opencl/cl.hpp"

namespace heddle::devices::opencl {

/// Throws DeviceError.
[[nodiscard]] std::shared_ptr<DeviceDriver> make_driver(cl_platform_id platform, cl_device_id device);

/// By clGetDeviceInfo or clGetPlatformInfo; "" where it does not tell.
template <class Get, class Object>
std::string text_by(const Get& get, Object object, cl_uint what) {
    size_t size = 0;
    if (get(object, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
    std::string text(size, '\0');
    get(object, what, size, text.data(), nullptr);
    return text.c_str();
}
inline std::string device_text(cl_device_id device, cl_device_info what) {
    return text_by(clGetDeviceInfo, device, what);
}
inline std::string platform_text(cl_platform_id platform, cl_platform_info what) {
    return text_by(clGetPlatformInfo, platform, what);
}

template <class Value>
Value device_value(cl_device_id device, cl_device_info what) {
    Value value{};
    clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
    return value;
}

/// Some say that they are all at once.
inline DeviceType type_of(cl_device_type flags) {
    if ((flags & CL_DEVICE_TYPE_CPU) != 0) return DeviceType::kCpu;
    return (flags & CL_DEVICE_TYPE_GPU) != 0 ? DeviceType::kGpu : DeviceType::kAccelerator;
}

}  // namespace heddle::devices::opencl
