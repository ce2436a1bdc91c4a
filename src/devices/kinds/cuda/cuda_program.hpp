// A program that NVRTC has compiled and a CUDA device has loaded, and its kernels.
#pragma once

#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "devices/driver.hpp"
#include "devices/kinds/cuda/cuda_api.hpp"

namespace heddle::devices::cuda {

/// A device's primary context, and which device that is.
struct Session {
    Context context = nullptr;
    DeviceNumber device = 0;
    std::string name;
    int major = 0, minor = 0;  ///< compute capability

    Session(DeviceNumber device, std::string name);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
};

/// CUDA's calls of this thread are for a device's context while this lives; then for the one of before, which
/// may be the program's own.
class Entered {
  public:
    /// Throws DeviceError.
    explicit Entered(const Session& session);
    /// Where nothing may be thrown: look whether it is in.
    Entered(const Session& session, std::nothrow_t) noexcept;
    ~Entered();
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    [[nodiscard]] bool in() const noexcept { return result_ == kSuccess; }

  private:
    Result result_;
};

struct CudaMemory final : DriverMemory {
    std::shared_ptr<Session> session;
    Address address = 0;
    ~CudaMemory() override;
};

/// What NVRTC makes of a source.
struct Compiled {
    std::string ptx;      ///< "" where it refused it
    std::string problem;  ///< NVRTC's name of it
    std::string log;
};
/// In front of the source stand heddle_offset and heddle_global_id(dimension), which counts as OpenCL's
/// get_global_id does.
[[nodiscard]] std::string with_prelude(const std::string& source);
/// With the prelude. `architecture`: as "compute_80"; "" for NVRTC's own choice.
[[nodiscard]] Compiled compile(const ProgramSource& source, const std::string& architecture);

/// The kernels in PTX, and the bytes of each of their parameters.
[[nodiscard]] std::map<std::string, std::vector<size_t>> entries_of(const std::string& ptx);

/// How the items of a kernel are laid out: so many blocks, of so many items each.
struct Layout {
    Extent grid, block;
};
/// As CUDA can have it. Throws Error kInvalidArgument for what is no whole groups, or too much.
[[nodiscard]] Layout layout_of(const std::string& kernel, const LaunchShape& shape);

/// A module in a device's context.
class LoadedModule {
  public:
    /// Throws DeviceError.
    LoadedModule(std::shared_ptr<Session> session, const std::string& ptx);
    ~LoadedModule();
    LoadedModule(const LoadedModule&) = delete;
    LoadedModule& operator=(const LoadedModule&) = delete;
    [[nodiscard]] Module get() const noexcept { return module_; }

  private:
    std::shared_ptr<Session> session_;
    Module module_ = nullptr;
};

/// One thread at a time, but for the names and the log.
class CudaProgram final : public DriverProgram {
  public:
    /// Throws BuildError with the compiler's log, DeviceError.
    CudaProgram(std::shared_ptr<Session> session, const ProgramSource& source);

    [[nodiscard]] std::vector<std::string> kernels() const override;
    [[nodiscard]] const std::string& log() const override { return log_; }

    /// Throws Error kInvalidArgument for arguments that it has not and shapes that cannot be, DeviceError.
    void launch(const std::string& name, std::span<const DriverArgument> arguments, const LaunchShape& shape,
                Stream stream);

  private:
    struct Entry {
        Function function = nullptr;
        std::vector<size_t> parameters;
    };
    void set_offset(const Extent& offset, Stream stream);

    std::shared_ptr<Session> session_;
    std::unique_ptr<LoadedModule> module_;
    std::string log_;
    std::map<std::string, Entry, std::less<>> entries_;
    Address offset_ = 0;  // of heddle_offset on the device; 0 where no kernel uses it
    Extent offset_now_{0, 0, 0};
};

}  // namespace heddle::devices::cuda
