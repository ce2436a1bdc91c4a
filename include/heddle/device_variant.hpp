// TaskDevices: tasks of heddle/task.hpp that have a kernel for devices beside their function.
//
//     TaskDevices devices(2);                                    // two tasks at once on the CPU
//     const auto program = std::make_shared<Program>(devices.runtime(), ProgramSource{.opencl = text});
//     Vector<float> x(runtime, n), y(runtime, n);
//     devices.insert(sequence, {program, "axpy", {n}},
//                    [](float a, std::span<const float> x, std::span<float> y) { ... },
//                    value(a), in(x), inout(y));
//
// The same data, the same order among other tasks: when all that it follows has ended, the device scheduler
// decides between the CPU, where the function runs on the task's own worker, and the devices, where the
// kernel runs, with the arguments in their order, while the task is paused. A function that waits gives its
// place on the CPU to the next task and goes on beside that one; what it takes is not learned. Devices with
// memory of their own keep what they have of the data for the next task, until another task of the runtime
// uses it or the program has waited (Keeping). On the engine starpu it is StarPU's own scheduler that
// decides, between the CPU and StarPU's OpenCL devices, where a TaskDevices was there before the first
// Runtime with that engine (docs/DEVICES.md). Any thread; the sequences' tasks have ended before this is
// destroyed, and their data are not destroyed meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heddle/device.hpp"
#include "heddle/export.hpp"
#include "heddle/task.hpp"

namespace heddle::devices {

/// The other implementation of a task.
struct DeviceVariant {
    std::shared_ptr<Program> program;
    std::string kernel;
    Extent work;
    Extent group{0, 0, 0};
    Score score = {};
};

/// An argument of the kernel: data with what is done with it, or a value of so many bytes.
struct VariantArgument {
    heddle::detail::DataView* data = nullptr;
    AccessMode mode = AccessMode::kIn;
    std::vector<std::byte> value = {};
};

/// What devices with memory of their own have of a task's data when it has ended.
enum class Keeping : uint8_t {
    /// Copies: what a device wrote is also back in the data. One that dies takes nothing along.
    kCopies,
    /// What it wrote is back when somebody needs it: another device, a task of the runtime that sees the
    /// data, the program after a wait. One that dies before that takes it along: who needs it then fails with
    /// kUnavailable.
    kResults,
};

class KeptBuffers;
class KnownData;

class HEDDLE_API TaskDevices {
  public:
    /// Up to so many of these tasks run on the CPU at once; with 0 each needs a device. Otherwise as
    /// DeviceRuntime, but that the CPU is enough.
    explicit TaskDevices(unsigned on_cpu, DeviceOptions options = {}, Keeping keeping = Keeping::kCopies);
    ~TaskDevices();
    TaskDevices(const TaskDevices&) = delete;
    TaskDevices& operator=(const TaskDevices&) = delete;

    /// Where the programs are built. Its devices of kind "host" are the CPU.
    [[nodiscard]] DeviceRuntime& runtime() noexcept { return *runtime_; }

    /// As Sequence::insert(), of in(), out(), inout() and value(). The task fails where the kernel does, and
    /// with kInvalidArgument for matrices whose columns do not follow each other without a gap.
    template <class Function, class... Arguments>
    void insert(Sequence& sequence, const TaskOptions& options, DeviceVariant variant, Function&& function,
                Arguments... arguments) {
        std::vector<VariantArgument> described{describe(arguments)...};
        auto body = [this, variant = std::move(variant), described = std::move(described),
                     function = std::forward<Function>(function)](auto&&... seen) mutable {
            run(variant, described, [&] { function(seen...); });
        };
        static_assert(heddle::detail::check_task<decltype(body), Arguments...>());
        using Closure = heddle::detail::KeepingClosure<decltype(body), Arguments...>;
        heddle::detail::insert_task<Closure>(
            sequence.state(), nullptr, &options, nullptr,
            [&](void* at) {
                new (at) Closure{{std::move(body), {{std::move(arguments)}...}}};
            },
            arguments...);
    }
    template <class Function, class... Arguments>
    void insert(Sequence& sequence, DeviceVariant variant, Function&& function, Arguments... arguments) {
        TaskOptions options;
        insert(sequence, options, std::move(variant), std::forward<Function>(function),
               std::move(arguments)...);
    }

  private:
    template <class D, heddle::AccessMode M>
    static VariantArgument describe(const heddle::detail::DataArgument<D, M>& argument) {
        static_assert(
            M == heddle::AccessMode::kIn || M == heddle::AccessMode::kOut || M == heddle::AccessMode::kInOut,
            "kernels of devices have in(), out(), inout() and value()");
        const AccessMode mode = M == heddle::AccessMode::kIn    ? AccessMode::kIn
                                : M == heddle::AccessMode::kOut ? AccessMode::kOut
                                                                : AccessMode::kInOut;
        return {argument.data, mode, {}};
    }
    template <class T>
    static VariantArgument describe(const heddle::detail::ValueArgument<T>& argument) {
        static_assert(std::is_trivially_copyable_v<T>, "a value for a kernel is plain bytes");
        const auto* const first = reinterpret_cast<const std::byte*>(&argument.value);
        return {nullptr, AccessMode::kIn, {first, first + sizeof(T)}};
    }
    /// In the task. `on_cpu` is its function.
    void run(const DeviceVariant& variant, std::span<const VariantArgument> arguments,
             const std::function<void()>& on_cpu);

    const Keeping keeping_;
    std::unique_ptr<DeviceRuntime> runtime_;
    std::unique_ptr<KeptBuffers> kept_;
    const bool may_use_cpu_;
    std::unique_ptr<KnownData> known_;
};

}  // namespace heddle::devices
