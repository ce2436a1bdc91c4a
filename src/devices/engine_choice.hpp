// Tasks for devices in an engine that has devices of its own and chooses itself (tasks/device_choice.hpp).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "heddle/device_variant.hpp"
#include "tasks/data_state.hpp"
#include "tasks/device_choice.hpp"

namespace heddle::devices {

/// What an engine knows of data that its devices have used. Between two tasks the data's own memory has their
/// bytes, too, so nothing is to be brought home; what others write makes the devices' copies worthless. One
/// for a TaskDevices; any thread.
class KnownData final : public DataKeeper {
  public:
    using Copies = KnownMemory;

    KnownData() = default;
    /// No task uses it any more.
    ~KnownData();
    KnownData(const KnownData&) = delete;
    KnownData& operator=(const KnownData&) = delete;

    /// As KeptBuffers: in a task of an engine that has a choice. Data of 1 byte or more.
    [[nodiscard]] std::shared_ptr<KnownMemory> begin(DataState& data, AccessMode how);
    void end(DataState& data, AccessMode how, bool failed) noexcept;

    void bring_home(DataState& data, heddle::AccessMode how) override;
    void forget(DataState& data) noexcept override;

  private:
    struct Known {
        std::shared_ptr<KnownMemory> memory;  // null: nothing is known any more
        unsigned writers = 0;
    };
    std::mutex mutex_;
    std::unordered_map<DataState*, Known> known_;
};

/// That of the engine which runs the calling task, where the task is one for it: its program is OpenCL C, and
/// its data are of 1 byte or more. Else null.
[[nodiscard]] DeviceChoice* choice_for(const DeviceVariant& variant,
                                       std::span<const VariantArgument> arguments) noexcept;

/// In the task, which is paused while others do the work. Throws as TaskDevices::insert() says of it.
void run_where_engine_says(DeviceChoice& choice, KnownData& known, const DeviceVariant& variant,
                           std::span<const VariantArgument> arguments, bool may_use_cpu,
                           const std::function<void()>& on_cpu);

}  // namespace heddle::devices
