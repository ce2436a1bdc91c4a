// What devices are called and tell: their types, errors, sources of programs, and devices that are simulated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "heddle/error.hpp"
#include "heddle/export.hpp"

namespace heddle::devices {

enum class DeviceType { kCpu, kGpu, kAccelerator };

/// "cpu", "gpu", "accelerator".
[[nodiscard]] HEDDLE_API const char* to_string(DeviceType type) noexcept;

/// A device, or a kind of devices that is not there.
struct DeviceInfo {
    std::string name;
    std::string kind;  ///< "opencl", "cuda", "simulated", "host"
    bool available = false;
    std::string version;   ///< of its driver
    std::string reason;    ///< why it is not available, and what to do
    std::string platform;  ///< whose driver it is
    DeviceType type = DeviceType::kCpu;
    unsigned units = 0;               ///< that compute at the same time
    uint64_t memory_bytes = 0;        ///< that a kernel can reach
    bool shares_host_memory = false;  ///< buffers are never copied for it, but for images
    bool has_images = false;          ///< kernels read and write images there
};

/// The devices of all kinds that this build knows, and an entry for each kind without one. Loads plug-ins and
/// drivers. Any thread.
[[nodiscard]] HEDDLE_API std::vector<DeviceInfo> list_devices();

/// A device refused or failed.
class HEDDLE_API DeviceError : public Error {
  public:
    DeviceError(ErrorCode code, std::string device, bool lost, const std::string& message)
        : Error(code, message), device_(std::move(device)), lost_(lost) {}
    [[nodiscard]] const std::string& device() const noexcept { return device_; }
    /// It is not used any more.
    [[nodiscard]] bool lost() const noexcept { return lost_; }

  private:
    std::string device_;
    bool lost_;
};

/// A program that a device's compiler refused; what() has the log.
class HEDDLE_API BuildError : public DeviceError {
  public:
    BuildError(const std::string& device, std::string log, const std::string& message)
        : DeviceError(ErrorCode::kBadInput, device, false, message), log_(std::move(log)) {}
    [[nodiscard]] const std::string& log() const noexcept { return log_; }

  private:
    std::string log_;
};

/// Up to three dimensions, in work items.
struct Extent {
    size_t x = 1;
    size_t y = 1;
    size_t z = 1;
    [[nodiscard]] size_t count() const noexcept { return x * y * z; }
};

/// Where a kernel runs: items offset .. offset + work - 1 in each dimension.
struct LaunchShape {
    Extent work;
    Extent offset{0, 0, 0};
    Extent group{0, 0, 0};  ///< items that share local memory; 0: the device's choice
};

/// The arguments of a kernel that is a host function: each is where its buffer, its value or its local memory
/// begins.
class HostArguments {
  public:
    explicit HostArguments(std::vector<void*> pointers) : pointers_(std::move(pointers)) {}
    /// Throws std::out_of_range.
    template <class T>
    [[nodiscard]] T* buffer(size_t index) const {
        return static_cast<T*>(pointers_.at(index));
    }
    template <class T>
    [[nodiscard]] const T& value(size_t index) const {
        return *static_cast<const T*>(pointers_.at(index));
    }

  private:
    std::vector<void*> pointers_;
};

/// Does the work of all items of the shape.
using HostKernel = std::function<void(const HostArguments&, const LaunchShape&)>;

/// One program, in a form for each kind of device. A device of a kind without a form cannot run it.
struct ProgramSource {
    std::string opencl = {};  ///< OpenCL C
    /// CUDA C++, kernels as extern "C". heddle_global_id(dimension) counts as OpenCL's get_global_id() does:
    /// a kernel that is to run in parts asks for its item so. Local memory is the kernel's extern __shared__.
    std::string cuda = {};
    std::string options = {};                     ///< for the compiler, whose ever: -DNAME=VALUE
    std::map<std::string, HostKernel> host = {};  ///< by kernel name, for simulated devices
};

/// Why the compiler of a kind refuses a source, in its own words; "" where it takes it. Needs the compiler
/// and no device, so a program for another machine can be looked at here. Throws Error kUnavailable where
/// that kind's compiler is not here or works for a device alone, kInvalidArgument for an unknown kind. Any
/// thread.
[[nodiscard]] HEDDLE_API std::string compiler_refusal(const std::string& kind, const ProgramSource& source);

/// A device that computes on the host, and tells what it costs on a virtual clock that all simulated devices
/// of a runtime share.
struct SimulatedDevice {
    std::string name;
    DeviceType type = DeviceType::kCpu;
    /// Of one launch, in microseconds. None: a microsecond for each 1,000 items.
    std::function<double(const std::string& kernel, const LaunchShape&)> cost_us = {};
    /// Of bytes that are copied to it or from it, in microseconds a byte. It copies while it computes.
    double us_per_byte = 0;
    bool shares_host_memory = false;
    /// It copies from another one that has this, too, without the host between them.
    bool peer_access = false;
    /// From this launch on (the first is 1) it is dead; 0: never.
    unsigned fails_at_launch = 0;
    /// The same by copies to it.
    unsigned fails_at_copy = 0;
    /// Kernels get the first pixel.
    bool has_images = false;
    /// As DeviceInfo tells it; nothing is refused for it.
    uint64_t memory_bytes = 0;
};

}  // namespace heddle::devices
