// Devices: one queue for the devices of all drivers (seed 004).
//
//     using namespace heddle::devices;
//     DeviceRuntime runtime;
//     const auto program = std::make_shared<Program>(runtime, ProgramSource{.opencl = text});
//     const auto data = std::make_shared<Buffer>(values, sizeof values);
//     const auto task = std::make_shared<DeviceTask>(program);
//     task->add_kernel("twice").arg(0, inout(data)).work(1000);
//     runtime.submit(task);
//     runtime.finish();
//     use(data->host());                                // the newest copy may be on a device
//
// A thread for each device (one for all simulated ones) takes tasks from the scheduler and sleeps when there
// are none. Tasks run as soon as those whose data they need have ended. All functions may be called by any
// thread; finish() and wait() are refused in callbacks. A device that dies takes no other with it: its tasks
// run elsewhere. Docs: DEVICES.md.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/device_buffer.hpp"
#include "heddle/device_task.hpp"
#include "heddle/device_types.hpp"
#include "heddle/export.hpp"

namespace heddle::devices {

struct DeviceState;

class HEDDLE_API Device {
  public:
    explicit Device(DeviceState& state) : state_(&state) {}
    [[nodiscard]] const DeviceInfo& info() const noexcept;
    [[nodiscard]] DeviceType type() const noexcept { return info().type; }
    /// In DeviceRuntime::devices().
    [[nodiscard]] unsigned index() const noexcept;
    /// It has not died.
    [[nodiscard]] bool alive() const noexcept;
    /// It has begun something that has not ended.
    [[nodiscard]] bool busy() const noexcept;
    /// What it has begun takes so much longer, by estimates, in microseconds.
    [[nodiscard]] double busy_us() const;
    /// Tasks that it has run to their end.
    [[nodiscard]] uint64_t tasks_run() const noexcept;

  private:
    friend class TaskState;
    DeviceState* state_;
};

using TaskPointer = std::shared_ptr<DeviceTask>;

/// Chooses where tasks run: a constructor, these three and a destructor (seed 004 section 2.3). Threads of
/// the runtime call them at any time; push and pop in turn, so that what becomes ready together is there
/// together: neither may wait for the other. With what submitted() and push() throw the tasks fail; the
/// others may not throw.
class HEDDLE_API Scheduler {
  public:
    virtual ~Scheduler() = default;
    /// A task whose predecessors have ended.
    virtual void push(TaskPointer task) = 0;
    /// For a device that is idle, or soon will be: a task that was pushed and runs_on() it (another one fails
    /// with kInvalidArgument), once, or null. It may be pushed once more.
    [[nodiscard]] virtual TaskPointer pop(const Device& device) = 0;
    /// Until each pushed task was popped, or is withdrawn. For programs: a runtime counts its tasks itself.
    virtual void wait_until_idle() = 0;

    /// It need not know these. What was submitted together, before any of it is pushed; it may have to wait.
    virtual void submitted(std::span<const TaskPointer> batch, std::span<const Device* const> devices);
    /// Nobody wants this task any more: if it was pushed it need not be popped.
    virtual void dropped(const TaskPointer& task);
};

/// "fcfs", "heft", "pams" (docs/DEVICES.md). Throws Error kInvalidArgument.
[[nodiscard]] HEDDLE_API std::shared_ptr<Scheduler> make_scheduler(const std::string& name);

struct DeviceOptions {
    /// Kinds that this machine's devices are of, each once.
    std::vector<std::string> kinds = {"opencl"};
    /// CPU devices of OpenCL are divided into devices of so many compute units (clCreateSubDevices, EQUALLY),
    /// each with a queue and costs of its own; 0: each is one. What cannot be divided is whole, and a warning
    /// says so. Their threads are bound where the program has the layer libheddle_cl.
    unsigned compute_units = 0;
    std::vector<SimulatedDevice> simulated = {};
    /// Devices of kind "host": TaskDevices sets it (heddle/device_variant.hpp).
    unsigned host_slots = 0;
    /// None: fcfs. Of one runtime at a time.
    std::shared_ptr<Scheduler> scheduler = {};
    /// What tasks take is measured, used in place of their scores, and kept for the next process.
    bool learn = true;
    /// Where; "": the user's usual place, but not for simulated devices.
    std::string costs_file = {};
};

class HEDDLE_API DeviceRuntime {
  public:
    /// Throws Error: kUnavailable where there is no device at all, with the reasons; kInvalidArgument for an
    /// unknown kind; kLimit where the system has no more threads: each device needs one.
    explicit DeviceRuntime(const DeviceOptions& options = {});
    /// Waits for all tasks; where a worker has the last reference, in a thread of its own.
    ~DeviceRuntime();
    DeviceRuntime(const DeviceRuntime&) = delete;
    DeviceRuntime& operator=(const DeviceRuntime&) = delete;

    [[nodiscard]] std::span<const Device> devices() const noexcept;
    /// Throw Error kInvalidArgument for a task that was submitted before, and kUnavailable for one that no
    /// device can run, with the reason of each; then none of the batch is submitted.
    void submit(TaskPointer task);
    void submit(std::span<const TaskPointer> batch);
    /// Until all submitted tasks have ended. Throws what the first one failed with since the last time, and
    /// Error kInvalidArgument in a callback.
    void finish();
    /// What was found on the way and is no error: devices that cannot be used and kinds without any, with the
    /// reason; a file of costs that is ignored.
    [[nodiscard]] const std::vector<std::string>& warnings() const noexcept;

  private:
    friend class Program;
    std::unique_ptr<RuntimeState> state_;
};

}  // namespace heddle::devices
