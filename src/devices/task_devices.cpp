// TaskDevices: a task that runs asks the device scheduler where its work is done, and is paused meanwhile.
#include <algorithm>
#include <atomic>
#include <exception>
#include <vector>

#include "devices/kept_buffers.hpp"
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
    const std::shared_ptr<HostTurn> turn = std::make_shared<HostTurn>();  // its time on the CPU

    void decide() {
        if (!is_decided.exchange(true)) decided.signal();
    }
};

/// What a task does with its data, from before it is submitted until it has ended.
class DataInUse {
  public:
    explicit DataInUse(KeptBuffers& kept) : kept_(kept) {}
    ~DataInUse() {
        for (const Use& use : uses_)
            if (use.buffer != nullptr) kept_.end(*use.data, use.how, failed_);
    }
    DataInUse(const DataInUse&) = delete;
    DataInUse& operator=(const DataInUse&) = delete;

    void note(heddle::detail::DataView& view, AccessMode how) {
        DataState& data = DataState::of(view);
        const auto same = std::ranges::find(uses_, &data, &Use::data);
        if (same == uses_.end())
            uses_.push_back({&data, how, nullptr});
        else if (same->how != how)
            same->how = AccessMode::kInOut;
    }
    void begin() {
        for (Use& use : uses_) use.buffer = kept_.begin(*use.data, use.how);
    }
    [[nodiscard]] const std::shared_ptr<Buffer>& buffer_of(const heddle::detail::DataView& view) const {
        return std::ranges::find(uses_, &DataState::of(view), &Use::data)->buffer;
    }
    void submitted() { failed_ = true; }
    /// The task's function has them in their own memory: what it writes no device has any more, and tasks
    /// that it inserts use the data by themselves.
    void has_them() {
        for (Use& use : uses_)
            if (use.how != AccessMode::kIn && use.buffer != nullptr) {
                kept_.end(*use.data, use.how, true);
                use.buffer = nullptr;
            }
    }
    void succeeded() { failed_ = false; }
    /// What was written, into the data's own memory.
    void fetch() const {
        for (const Use& use : uses_)
            if (use.how != AccessMode::kIn && use.buffer != nullptr) (void)use.buffer->host();
    }

  private:
    struct Use {
        DataState* data;
        AccessMode how;
        std::shared_ptr<Buffer> buffer;
    };
    KeptBuffers& kept_;
    std::vector<Use> uses_;
    bool failed_ = false;
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

}  // namespace

TaskDevices::TaskDevices(unsigned on_cpu, DeviceOptions options, Keeping keeping)
    : keeping_(keeping),
      runtime_(std::make_unique<DeviceRuntime>(with_host(std::move(options), on_cpu))),
      kept_(std::make_unique<KeptBuffers>(runtime_->devices())) {}

TaskDevices::~TaskDevices() = default;

void TaskDevices::run(const DeviceVariant& variant, std::span<const VariantArgument> arguments,
                      const std::function<void()>& on_cpu) {
    const auto task = std::make_shared<DeviceTask>(variant.program, variant.score, variant.kernel);
    Kernel& kernel = task->add_kernel(variant.kernel);
    kernel.work(variant.work.x, variant.work.y, variant.work.z);
    kernel.group(variant.group.x, variant.group.y, variant.group.z);
    DataInUse used(*kept_);
    for (const VariantArgument& argument : arguments)
        if (argument.data != nullptr) used.note(*argument.data, argument.mode);
    used.begin();
    for (unsigned i = 0; i < arguments.size(); ++i) {
        const VariantArgument& argument = arguments[i];
        if (argument.data == nullptr) {
            kernel.bytes(i, argument.value.data(), argument.value.size());
            continue;
        }
        kernel.arg(i, Access{used.buffer_of(*argument.data), argument.mode, {}});
    }
    const auto stay = std::make_shared<Stay>();
    task->on_configure([stay](Device& device, DeviceTask&) {
        if (device.info().kind == "host") set_next_turn(stay->turn);
    });
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
    if (keeping_ == Keeping::kCopies) used.fetch();
    used.succeeded();
}

}  // namespace heddle::devices
