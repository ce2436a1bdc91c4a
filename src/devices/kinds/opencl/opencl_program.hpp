// A program that an OpenCL device has built, and its kernels. One thread at a time, but for the names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "devices/driver.hpp"
#include "devices/kinds/opencl/cl.hpp"

namespace heddle::devices::opencl {

struct OpenClMemory final : DriverMemory {
    std::shared_ptr<std::remove_pointer_t<cl_context>> context;
    Memory object;
    std::optional<ImageShape> image;
};

class OpenClProgram final : public DriverProgram {
  public:
    /// Throws BuildError with the compiler's log.
    OpenClProgram(std::shared_ptr<std::remove_pointer_t<cl_context>> context, cl_device_id device,
                  const std::string& device_name, const ProgramSource& source);

    [[nodiscard]] std::vector<std::string> kernels() const override;
    [[nodiscard]] const std::string& log() const override { return log_; }

    /// With its arguments set. Throws Error kInvalidArgument for arguments that it has not, and for more
    /// local memory than the device has.
    [[nodiscard]] cl_kernel prepared(const std::string& name, std::span<const DriverArgument> arguments);

  private:
    struct Parameter {
        bool is_pointer = false;
        bool is_image = false;
        bool is_local = false;
        std::string text;  // "" where the device does not tell
    };
    struct Entry {
        ClKernel object;
        cl_uint count = 0;
        cl_ulong local_bytes = 0;  // without those of arguments
        std::vector<Parameter> parameters;
    };
    [[nodiscard]] Entry make(const std::string& name) const;
    void check_local_memory(const std::string& name, const Entry& entry,
                            std::span<const DriverArgument> arguments) const;

    std::shared_ptr<std::remove_pointer_t<cl_context>> context_;
    const cl_device_id device_;
    const std::string device_name_;
    ClProgram program_;
    std::string log_;
    std::map<std::string, Entry, std::less<>> entries_;
};

/// A launch of a kernel with its arguments, after those events; `event`, or null, becomes its own. Throws
/// DeviceError.
void enqueue(cl_command_queue queue, cl_kernel prepared, const std::string& kernel, const std::string& device,
             const LaunchShape& shape, std::span<const cl_event> after, cl_event* event);

}  // namespace heddle::devices::opencl
