// parallelme::Runtime (seed 004): the devices of all OpenCL drivers, and the queue that they share.
#pragma once

#include <memory>
#include <stdexcept>
#include <vector>

#include "../parallelme/Device.hpp"
#include "../parallelme/Java.hpp"
#include "../parallelme/Scheduler.hpp"

namespace parallelme {

class RuntimeConstructionError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};
class RuntimeExecutionError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Runtime {
  public:
    /// First come, first served. Throws RuntimeConstructionError where there is no device.
    Runtime(JavaVM* jvm = nullptr) : Runtime(jvm, nullptr) {}
    Runtime(JavaVM*, std::shared_ptr<Scheduler> scheduler);
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    /// Throws RuntimeExecutionError where no device can run it.
    void submitTask(std::unique_ptr<Task> task);
    /// Throws RuntimeExecutionError with what the first task failed with.
    void finish();
    std::vector<std::shared_ptr<Device>>& devices() { return devices_; }

    heddle::devices::DeviceRuntime& heddle_runtime() { return *runtime_; }

  private:
    class Adapter;

    std::shared_ptr<Adapter> adapter_;  // null where heddle's own scheduler decides
    std::unique_ptr<heddle::devices::DeviceRuntime> runtime_;
    std::vector<std::shared_ptr<Device>> devices_;
};

}  // namespace parallelme
