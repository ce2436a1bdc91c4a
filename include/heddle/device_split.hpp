// DeviceSplit: one kernel over all devices, each with as much of it as it is fast.
//
//     DeviceSplit split(runtime);
//     split.run(rows, [&](size_t first, size_t count) {
//         auto task = std::make_shared<DeviceTask>(program);
//         task->add_kernel("blur").arg(0, in(source)).arg(1, out(result, bytes_of(first, count)))
//             .work(width, count).offset(0, first);
//         return task;
//     });
//
// The speed of a device is what its parts took: the median of the last runs of this object, so that one is
// for one kernel. Devices whose speed nobody knows get two small parts first; the first one compiles. Any
// thread, one run at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "heddle/device.hpp"
#include "heddle/export.hpp"

namespace heddle::devices {

struct SplitState;

class HEDDLE_API DeviceSplit {
  public:
    /// A task that is not submitted, for items first .. first + count - 1; parts write apart from each other.
    using Part = std::function<TaskPointer(size_t first, size_t count)>;

    /// The runtime outlives it.
    explicit DeviceSplit(DeviceRuntime& runtime);
    ~DeviceSplit();
    DeviceSplit(const DeviceSplit&) = delete;
    DeviceSplit& operator=(const DeviceSplit&) = delete;

    /// Returns when all items are done, with the tasks that did them. The part of a device that dies is done
    /// by the others, those too that it had done and nobody else has. Throws what a part fails with, and
    /// Error kUnavailable where no device is left that runs them, or where a lost part had changed what it
    /// read, and kInvalidArgument for a part that is no task; DeviceRuntime::finish() does not tell any of it
    /// once more.
    std::vector<TaskPointer> run(size_t items, const Part& part);
    /// Items a microsecond by device, 0 where nobody knows.
    [[nodiscard]] std::vector<double> speeds() const;

  private:
    std::unique_ptr<SplitState> state_;
};

}  // namespace heddle::devices
