// TaskDevices: a task that runs asks the device scheduler where its work is done, and is paused meanwhile.
#include <atomic>
#include <exception>
#include <map>

#include "devices/kinds/host/host_driver.hpp"
#include "devices/task_state.hpp"
#include "heddle/device_variant.hpp"
#include "heddle/pause.hpp"

namespace heddle::devices {
namespace {

/// Between a task and the device task that stands for it, which may outlive it.
struct Stay {
    BlockCondition decided;  // it is the CPU, or it is over
    BlockCondition ended;
    std::atomic<bool> is_decided{false};
    std::atomic<bool> on_cpu{false};
    const std::shared_ptr<HostTurn> turn = std::make_shared<HostTurn>();  // its end, on the CPU

    void decide() {
        if (!is_decided.exchange(true)) decided.signal();
    }
};

DeviceOptions with_host(DeviceOptions options, unsigned on_cpu) {
    options.host_slots = on_cpu;
    return options;
}

/// Until nobody uses its data any more.
void give_up(DeviceTask& task, Stay& stay) {
    if (task.cancel()) return;
    stay.turn->end();
    try {
        task.wait();
    } catch (const std::exception&) {
        // Its caller has another reason to fail.
    }
}

std::shared_ptr<Buffer> buffer_of(const heddle::detail::DataView& view) {
    if (view.columns > 1 && view.leading != view.rows)
        throw Error(ErrorCode::kInvalidArgument,
                    "a matrix for a kernel has columns that follow each other without a gap");
    return std::make_shared<Buffer>(view.address, view.rows * view.columns * view.element_bytes);
}

}  // namespace

TaskDevices::TaskDevices(unsigned on_cpu, DeviceOptions options)
    : runtime_(std::make_unique<DeviceRuntime>(with_host(std::move(options), on_cpu))) {}

TaskDevices::~TaskDevices() = default;

void TaskDevices::run(const DeviceVariant& variant, std::span<const VariantArgument> arguments,
                      const std::function<void()>& on_cpu) {
    const auto task = std::make_shared<DeviceTask>(variant.program, variant.score, variant.kernel);
    Kernel& kernel = task->add_kernel(variant.kernel);
    kernel.work(variant.work.x, variant.work.y, variant.work.z);
    kernel.group(variant.group.x, variant.group.y, variant.group.z);
    std::map<const void*, std::shared_ptr<Buffer>> buffers;  // by their data
    for (unsigned i = 0; i < arguments.size(); ++i) {
        const VariantArgument& argument = arguments[i];
        if (argument.data == nullptr) {
            kernel.bytes(i, argument.value.data(), argument.value.size());
            continue;
        }
        std::shared_ptr<Buffer>& buffer = buffers[argument.data];
        if (buffer == nullptr) buffer = buffer_of(*argument.data);
        kernel.arg(i, Access{buffer, argument.mode, {}});
    }
    const auto stay = std::make_shared<Stay>();
    task->on_configure([stay](Device& device, DeviceTask&) {
        if (device.info().kind != "host") return;
        stay->on_cpu = true;
        set_next_turn(stay->turn);
        stay->decide();
    });
    TaskState::of(*task).told = [stay] {
        stay->decide();
        stay->ended.signal();
    };
    runtime_->submit(task);
    try {
        stay->decided.block();
    } catch (...) {
        give_up(*task, *stay);
        throw;
    }
    std::exception_ptr failure;
    if (stay->on_cpu) {
        try {
            on_cpu();
        } catch (...) {
            failure = std::current_exception();
        }
        stay->turn->end();
    }
    try {
        stay->ended.block();
    } catch (const Error&) {
        // A task that cannot pause once more sleeps in wait(): nothing but its device is needed for its end.
    }
    if (failure != nullptr) {
        give_up(*task, *stay);
        std::rethrow_exception(failure);
    }
    task->wait();
    for (const auto& [data, buffer] : buffers) (void)buffer->host();
}

}  // namespace heddle::devices
