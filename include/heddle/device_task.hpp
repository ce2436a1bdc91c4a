// Program, Kernel, DeviceTask: what devices run (seed 004 section 2.1).
//
// A task is a chain of kernels that run one after the other on one device, which a scheduler chooses. It is
// built by one thread and then submitted; after that only the functions that say so may be called.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "heddle/device_buffer.hpp"
#include "heddle/device_types.hpp"
#include "heddle/export.hpp"

namespace heddle::devices {

class Device;
class DeviceRuntime;
class RuntimeState;
class TaskState;
struct ProgramState;

class HEDDLE_API Program {
  public:
    /// Builds for all devices of the runtime at once. Throws BuildError where none takes it.
    Program(DeviceRuntime& runtime, const ProgramSource& source);
    ~Program();
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    [[nodiscard]] bool built_on(const Device& device) const;
    /// What its compiler said: warnings, or why it did not build it. "" for nothing.
    [[nodiscard]] const std::string& log(const Device& device) const;

  private:
    friend class TaskState;
    std::shared_ptr<ProgramState> state_;
};

/// Local memory of so many bytes, an argument of a kernel.
struct LocalMemory {
    size_t bytes = 0;
};

using KernelArgument = std::variant<std::monostate, std::vector<std::byte>, Access, LocalMemory>;

/// One launch in a task. All functions return it, to be chained.
class HEDDLE_API Kernel {
  public:
    explicit Kernel(std::string name) : name_(std::move(name)) {}
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    Kernel& arg(unsigned index, Access access);
    Kernel& arg(unsigned index, std::shared_ptr<Buffer> buffer) {
        return arg(index, inout(std::move(buffer)));
    }
    Kernel& arg(unsigned index, LocalMemory local);
    template <class T>
    requires std::is_trivially_copyable_v<T> Kernel& arg(unsigned index, const T& value) {
        return bytes(index, &value, sizeof value);
    }
    /// A value of so many bytes.
    Kernel& bytes(unsigned index, const void* value, size_t size);
    Kernel& work(size_t x, size_t y = 1, size_t z = 1);
    Kernel& offset(size_t x, size_t y = 0, size_t z = 0);
    /// Items that share local memory; by default, and with x = 0, the device's choice. Throws Error
    /// kInvalidArgument for no items in another dimension.
    Kernel& group(size_t x, size_t y = 1, size_t z = 1);

  private:
    friend class TaskState;
    /// Throws kInvalidArgument for work that cannot be.
    void check_shape() const;
    KernelArgument& argument(unsigned index);

    std::string name_;
    std::vector<KernelArgument> arguments_;
    LaunchShape shape_{{0, 1, 1}, {0, 0, 0}, {0, 0, 0}};
};

/// How long a task is thought to take on each type of device, in microseconds, as long as nobody has measured
/// it. Lower is better (seed 004 section 2.1).
struct Score {
    double cpu = 1;
    double gpu = 1;
    double accelerator = 1;
    bool operator==(const Score&) const = default;
};

enum class TaskStatus { kBuilt, kWaiting, kReady, kRunning, kDone, kFailed, kCancelled };

/// When a task ran, in microseconds of its device's clock: virtual for simulated devices. Zeros until it has
/// ended.
struct TaskTimes {
    double started_us = 0;
    double ended_us = 0;
};

class HEDDLE_API DeviceTask {
  public:
    using Callback = std::function<void(Device&, DeviceTask&)>;

    explicit DeviceTask(std::shared_ptr<Program> program, Score score = {}, std::string name = {});
    ~DeviceTask();
    DeviceTask(const DeviceTask&) = delete;
    DeviceTask& operator=(const DeviceTask&) = delete;

    /// Throws Error kInvalidArgument for a name that no device's program has, with those that there are.
    Kernel& add_kernel(const std::string& name);
    /// The first one of that name. Throws Error kInvalidArgument.
    [[nodiscard]] Kernel& kernel(const std::string& name);
    /// Both are called by the device's thread: when the device is known, to set what was not set yet; after
    /// the last kernel. Buffers that only appear there are not waited for; but a task with on_configure has
    /// its device alone, from before that callback until on_finish has returned, as each task has in seed
    /// 004: tasks without it are faster where they are short. What they throw fails the task.
    void on_configure(Callback callback);
    void on_finish(Callback callback);
    /// Higher first, among tasks that the scheduler finds alike.
    void priority(int value);
    /// Only this device may run it, of its program's runtime. Throws Error kInvalidArgument for one of
    /// another.
    void only_on(const Device& device);

    // From here on: any thread, at any time.
    [[nodiscard]] const std::string& name() const noexcept;
    [[nodiscard]] int priority() const noexcept;
    [[nodiscard]] const Score& score() const noexcept;
    [[nodiscard]] TaskStatus status() const;
    /// Until it has ended. Throws what it failed with (until that, or finish(), tasks that are submitted and
    /// need what it was to write fail, too), and Error kInvalidArgument for one that was not submitted or was
    /// cancelled, or that a callback of its runtime would have to wait for.
    void wait();
    /// True where it had not begun, and never will; those that need its results are cancelled, too.
    bool cancel();
    /// Of the device that ran it, else -1.
    [[nodiscard]] int device() const;
    [[nodiscard]] TaskTimes times() const;

    // For schedulers.
    [[nodiscard]] bool runs_on(const Device& device) const;
    /// Tasks of the same signature do the same work: the same program, kernels and sizes.
    [[nodiscard]] uint64_t signature() const noexcept;
    /// Nobody has said or measured what it takes on this device: a scheduler that plans tries it there once.
    [[nodiscard]] bool unknown_on(const Device& device) const;
    /// Measured, or the score; at least a nanosecond, and never without end.
    [[nodiscard]] double estimate_us(const Device& device) const;
    /// To bring what it reads to the device, as things lie now; but for what tasks before it have still to
    /// write.
    [[nodiscard]] double transfer_us(const Device& device) const;
    /// To bring what it reads of what `predecessor` writes from one device to another, by what was known of
    /// that when it was submitted.
    [[nodiscard]] double exchange_us(const DeviceTask& predecessor, const Device& from,
                                     const Device& to) const;
    /// As is thought, from now until what it reads of what `predecessor` writes is on the device; 0 where no
    /// device has taken that one, or it has ended.
    [[nodiscard]] double arrives_in_us(const DeviceTask& predecessor, const Device& device) const;
    /// Those that have not ended; each may appear several times.
    [[nodiscard]] std::vector<std::shared_ptr<DeviceTask>> follows() const;

  private:
    friend class TaskState;
    std::shared_ptr<TaskState> state_;
};

}  // namespace heddle::devices
