// TaskDevices: a task that runs asks the device scheduler where its work is done, and is paused meanwhile.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>
#include <vector>

#include "devices/data_in_use.hpp"
#include "devices/engine_choice.hpp"
#include "devices/kept_buffers.hpp"
#include "devices/kinds/host/host_driver.hpp"
#include "devices/task_state.hpp"
#include "heddle/device_variant.hpp"
#include "heddle/error.hpp"
#include "heddle/pause.hpp"
#include "tasks/frame.hpp"

namespace heddle::devices {
namespace {

/// Between a task and the device task that stands for it, which may outlive it.
struct Stay {
    BlockCondition decided;  // it is the CPU, or it is over
    BlockCondition ended;
    std::atomic<bool> is_decided{false};
    std::atomic<bool> on_cpu{false};
    const std::shared_ptr<HostTurn> turn = std::make_shared<HostTurn>();  // its time on the CPU

    void decide() {
        if (!is_decided.exchange(true)) decided.signal();
    }
};

/// The task's function runs in its place on the CPU, until it waits for the first time: then that is another
/// task's, for this one may wait for it.
class Place final : public HeldByTask {
  public:
    Place(Stay& stay, TaskState& task) : stay_(stay), task_(task), frame_(*current_frame()) {
        frame_.held = this;
    }
    ~Place() {
        frame_.held = nullptr;
        stay_.turn->end();
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    void let_go() noexcept override {
        if (!std::exchange(task_.tells_cost, false)) return;
        stay_.turn->end();
    }

  private:
    Stay& stay_;
    TaskState& task_;
    TaskFrame& frame_;
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

/// Whoever decides where it runs.
void check(const DeviceVariant& variant) {
    if (variant.program == nullptr)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("a device task needs a program: kernel \"{}\" has none", variant.kernel));
    if (variant.work.count() == 0)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("kernel \"{}\" has no work: set DeviceVariant::work", variant.kernel));
}

}  // namespace

TaskDevices::TaskDevices(unsigned on_cpu, DeviceOptions options, Keeping keeping)
    : keeping_(keeping),
      runtime_(std::make_unique<DeviceRuntime>(with_host(std::move(options), on_cpu))),
      kept_(std::make_unique<KeptBuffers>(runtime_->devices())),
      may_use_cpu_(on_cpu > 0),
      known_(std::make_unique<KnownData>()) {
    DeviceChoice::want_devices();
}

TaskDevices::~TaskDevices() = default;

void TaskDevices::run(const DeviceVariant& variant, std::span<const VariantArgument> arguments,
                      const std::function<void()>& on_cpu) {
    check(variant);
    if (DeviceChoice* const choice = choice_for(variant, arguments))
        return run_where_engine_says(*choice, *known_, variant, arguments, may_use_cpu_, on_cpu);
    const auto task = std::make_shared<DeviceTask>(variant.program, variant.score, variant.kernel);
    Kernel& kernel = task->add_kernel(variant.kernel);
    kernel.work(variant.work.x, variant.work.y, variant.work.z);
    kernel.group(variant.group.x, variant.group.y, variant.group.z);
    DataInUse used(*kept_);
    used.begin(arguments);
    for (unsigned i = 0; i < arguments.size(); ++i) {
        const VariantArgument& argument = arguments[i];
        if (argument.data == nullptr) {
            kernel.bytes(i, argument.value.data(), argument.value.size());
            continue;
        }
        kernel.arg(i, Access{used.copies_of(*argument.data), argument.mode, {}});
    }
    const auto stay = std::make_shared<Stay>();
    task->on_configure([stay](Device& device, DeviceTask&) {
        if (device.info().kind == "host") set_next_turn(stay->turn);
    });
    TaskState::of(*task).configure_adds_data = false;
    stay->turn->on_begin([at = std::weak_ptr<Stay>(stay)] {
        const auto begun = at.lock();
        if (begun == nullptr) return;
        begun->on_cpu = true;
        begun->decide();
    });
    TaskState::of(*task).told = [stay] {
        stay->decide();
        stay->ended.signal();
    };
    used.submitted();
    runtime_->submit(task);
    try {
        stay->decided.block();
    } catch (...) {
        give_up(*task, *stay);
        throw;
    }
    std::exception_ptr failure;
    if (stay->on_cpu) {
        used.has_them();
        const Place place(*stay, TaskState::of(*task));
        try {
            on_cpu();
        } catch (...) {
            failure = std::current_exception();
        }
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
    if (keeping_ == Keeping::kCopies)
        used.for_each([](const std::shared_ptr<Buffer>& buffer, AccessMode how) {
            // What was written, into the data's own memory.
            if (how != AccessMode::kIn && buffer != nullptr) (void)buffer->host();
        });
    used.succeeded();
}

}  // namespace heddle::devices
