// DeviceDriver: one device as its kind of driver offers it. Kinds are plug-ins, libheddle-device-KIND.so,
// with an extern "C" function heddle_device_kind() that returns a DeviceKind; they need nothing of
// libheddle.so but headers.
//
// Launches between two marks take place in the order in which they are given, each after all writes that were
// given before it. Those behind a mark may run beside those before it. Writes may pass launches: a device
// with memory of its own copies while it computes, where it can. The device's worker launches and writes, and
// any thread reads; a driver bears both at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/device_image.hpp"
#include "heddle/device_types.hpp"
#include "tasks/device_choice.hpp"

namespace heddle::devices {

class DeviceTrace;

/// A buffer on a device. It keeps alive what it needs of its driver.
class DriverMemory {
  public:
    virtual ~DriverMemory() = default;
};

/// A program that was built for a device.
class DriverProgram {
  public:
    virtual ~DriverProgram() = default;
    /// Those that it can tell.
    [[nodiscard]] virtual std::vector<std::string> kernels() const = 0;
    /// One that it cannot tell.
    [[nodiscard]] virtual bool may_have(const std::string&) const { return false; }
    [[nodiscard]] virtual const std::string& log() const = 0;
};

/// A buffer, a value, or (neither) local memory of so many bytes.
struct DriverArgument {
    DriverMemory* memory = nullptr;
    const void* value = nullptr;
    size_t bytes = 0;
};

/// A copy to a device that was begun. Any thread.
class DriverCopy {
  public:
    virtual ~DriverCopy() = default;
    [[nodiscard]] virtual bool has_ended() = 0;
    /// Waits for it. False where it failed.
    [[nodiscard]] virtual bool finish() = 0;
};

/// An argument on a device that another runtime has opened: memory by the name that its driver has for it, a
/// cl_mem, or a value.
struct ForeignArgument {
    void* memory = nullptr;
    const void* value = nullptr;
    size_t bytes = 0;
};

/// A point in the commands of a device.
using Mark = uint64_t;

class DeviceDriver {
  public:
    virtual ~DeviceDriver() = default;
    [[nodiscard]] virtual const DeviceInfo& info() const = 0;
    /// Null where the source has no form for it. Throws BuildError, DeviceError.
    [[nodiscard]] virtual std::shared_ptr<DriverProgram> build(const ProgramSource& source) = 0;
    /// For a device that shares the host's memory it is that at `host`. Throws DeviceError.
    [[nodiscard]] virtual std::unique_ptr<DriverMemory> allocate(size_t bytes, void* host) = 0;
    /// "", or why it has no such image.
    [[nodiscard]] virtual std::string image_problem(const ImageShape&) const { return "it has no images"; }
    /// Never the host's memory; written and read as a whole. Throws DeviceError.
    [[nodiscard]] virtual std::unique_ptr<DriverMemory> allocate_image(const ImageShape& shape) {
        throw DeviceError(ErrorCode::kUnavailable, info().name, false,
                          info().name + " cannot have an image: " + image_problem(shape));
    }
    /// The worker alone. The memory and the host's bytes stay as they are until it has ended. Null: it has.
    /// Throws DeviceError.
    [[nodiscard]] virtual std::unique_ptr<DriverCopy> write(DriverMemory& memory, size_t offset, size_t bytes,
                                                            const void* from) = 0;
    /// Its copies may come from that device's memory without passing through the host's.
    [[nodiscard]] virtual bool copies_from(const DeviceDriver&) const { return false; }
    /// Of such a device, what could be read there now: as write(). Throws DeviceError, whichever of the two
    /// is to blame.
    [[nodiscard]] virtual std::unique_ptr<DriverCopy> copy(DriverMemory&, size_t /*offset*/, size_t /*bytes*/,
                                                           const DeviceDriver& /*source*/,
                                                           const DriverMemory& /*from*/) {
        return nullptr;
    }
    /// Of what was written, or computed before a mark that has passed. Returns when they are there. Throws
    /// DeviceError.
    virtual void read(DriverMemory& memory, size_t offset, size_t bytes, void* to) = 0;
    /// The worker alone. Throws DeviceError, and Error kInvalidArgument for arguments that do not fit.
    virtual void launch(DriverProgram& program, const std::string& kernel,
                        std::span<const DriverArgument> arguments, const LaunchShape& shape) = 0;
    /// After all commands since the mark before.
    [[nodiscard]] virtual Mark mark() = 0;
    /// The worker alone: the next launch takes place after this mark, which was not waited for yet.
    virtual void follow(Mark) {}
    /// The worker alone; each mark is waited for, in their order. Throws DeviceError where a command failed.
    virtual void wait(Mark mark) = 0;
    /// The worker alone: until this mark has passed, which is waited for then, as are those before.
    virtual void sleep_until_passed(Mark) {}
    /// The worker alone: until all commands so far have ended, of a device that has failed.
    virtual void drain() noexcept {}
    /// Of the device's clock.
    [[nodiscard]] virtual double now_us() const = 0;

    /// Devices with the same clock are served by one worker, which waits for the mark that comes first.
    [[nodiscard]] virtual const void* clock() const { return this; }
    [[nodiscard]] virtual double passes_at_us(Mark) const { return 0; }
    /// It may have tasks behind the one that runs.
    [[nodiscard]] virtual bool looks_ahead() const { return true; }
    /// The first launch of a kernel takes longer than the others.
    [[nodiscard]] virtual bool compiles_at_first_launch() const { return true; }
    /// Of a copy between the host and the device, by what is known before.
    [[nodiscard]] virtual double copy_us(size_t bytes) const = 0;

    /// Set before anything runs; null where nothing is traced.
    std::shared_ptr<DeviceTrace> trace;
    /// Written once, by the worker; read by any thread that looks for a valid copy.
    std::atomic<bool> dead{false};
    /// Its runtime has gone: buffers keep what they have there until another device needs them.
    std::atomic<bool> retired{false};
};

/// Of a copy from one device to another, straight or by the host, by what is known before.
[[nodiscard]] inline double copy_us(const DeviceDriver& from, const DeviceDriver& to, size_t bytes) {
    const auto one_way_us = [&](const DeviceDriver& device) {
        return device.info().shares_host_memory ? 0 : device.copy_us(bytes);
    };
    return to.copies_from(from) ? std::max(one_way_us(from), one_way_us(to))
                                : one_way_us(from) + one_way_us(to);
}

/// Goes up with each change of what stands above.
inline constexpr uint32_t kDeviceInterface = 7;

struct DeviceKind {
    uint32_t interface;  ///< kDeviceInterface of the headers that it was built with
    const char* name;
    /// "", or why there is none, and what to do.
    std::string (*problem)();
    /// CPU devices in parts of so many compute units, or whole for 0. Those that cannot be used, or divided,
    /// join the list, with the reason.
    std::vector<std::shared_ptr<DeviceDriver>> (*open)(std::vector<DeviceInfo>& unusable, unsigned units);
    /// Why the compiler refuses it, or ""; null where there is no compiler without a device. Throws Error
    /// kUnavailable where the compiler is not there.
    std::string (*refusal)(const ProgramSource& source);
    /// On a device that an engine's runtime has opened; null: of this kind no engine has any. Throws
    /// BuildError, DeviceError.
    std::shared_ptr<DriverProgram> (*build_on)(const EngineDevice& device,
                                               const ProgramSource& source) = nullptr;
    /// Returns when it is done. One thread at a time for a program. Throws DeviceError, and Error
    /// kInvalidArgument for arguments that do not fit.
    void (*run_on)(const EngineDevice& device, DriverProgram& program, const std::string& kernel,
                   std::span<const ForeignArgument> arguments, const LaunchShape& shape) = nullptr;
};

/// "", or why a plug-in cannot be used that gives this kind: it was built with other headers.
[[nodiscard]] std::string interface_problem(const DeviceKind& kind);
/// Whether or not it has devices. Throws Error kUnavailable with what to do, kInvalidArgument for a kind that
/// this build does not know.
[[nodiscard]] const DeviceKind& load_device_kind(const std::string& name);
/// All devices of a kind; those that heddle cannot use are told in `unusable`. Any thread. Throws Error
/// kUnavailable with what to do where there is none, kInvalidArgument for a kind that this build does not
/// know.
[[nodiscard]] std::vector<std::shared_ptr<DeviceDriver>> open_devices(const std::string& kind_name,
                                                                      std::vector<DeviceInfo>& unusable,
                                                                      unsigned units = 0);
[[nodiscard]] std::vector<std::string> device_kind_names();

}  // namespace heddle::devices
