// parallelme::Program (seed 004): OpenCL C, built for each device that takes it.
#pragma once

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "../parallelme/Device.hpp"
#include "../parallelme/Runtime.hpp"

namespace parallelme {

class ProgramCompilationError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Program {
  public:
    /// Throws ProgramCompilationError with the devices' logs where none has built it.
    Program(std::shared_ptr<Runtime> runtime, const char* source, const char* compilerFlags = nullptr)
        : runtime_(std::move(runtime)) {
        if (runtime_ == nullptr || source == nullptr)
            throw ProgramCompilationError("a program needs a runtime and a source");
        try {
            heddle::devices::ProgramSource text;
            text.opencl = source;
            if (compilerFlags != nullptr) text.options = compilerFlags;
            program_ = std::make_shared<heddle::devices::Program>(runtime_->heddle_runtime(), text);
        } catch (const heddle::Error& error) {
            throw ProgramCompilationError(error.what());
        }
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    bool hasDeviceID(unsigned id) const {
        const auto devices = runtime_->heddle_runtime().devices();
        return id < devices.size() && program_->built_on(devices[id]);
    }
    bool hasDeviceType(Device::Type type) const {
        const auto devices = runtime_->heddle_runtime().devices();
        return std::any_of(devices.begin(), devices.end(), [&](const heddle::devices::Device& device) {
            return static_cast<Device::Type>(device.type()) == type && program_->built_on(device);
        });
    }

    const std::shared_ptr<Runtime>& runtime() const { return runtime_; }
    const std::shared_ptr<heddle::devices::Program>& heddle_program() const { return program_; }

  private:
    std::shared_ptr<Runtime> runtime_;
    std::shared_ptr<heddle::devices::Program> program_;
};

}  // namespace parallelme
