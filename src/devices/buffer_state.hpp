// BufferState: where which range of a buffer is valid, and which tasks use it.
//
// A range is valid on a set of places: the host, which is also that of all devices that share its memory, and
// each device with memory of its own. Valid in one place alone: modified there; in several: shared; in
// none: lost with a device. Its own lock guards the copies; the uses are guarded by the lock of all graphs.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "devices/driver.hpp"
#include "devices/range_map.hpp"
#include "heddle/device_buffer.hpp"

namespace heddle::devices {

class TaskState;

/// A device, or what it had, that another one needed: that other one is not to blame.
class SourceError : public DeviceError {
  public:
    using DeviceError::DeviceError;
};

/// Who wrote a range last, and who has read it since.
struct RangeUse {
    std::shared_ptr<TaskState> writer;
    std::vector<std::shared_ptr<TaskState>> readers;
    bool operator==(const RangeUse&) const = default;
};

class BufferState {
  public:
    BufferState(void* memory, size_t bytes, std::string name);
    ~BufferState();

    [[nodiscard]] static BufferState& of(Buffer& buffer) { return *buffer.state_; }

    [[nodiscard]] size_t size() const noexcept { return size_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] void* host_memory() const noexcept { return host_; }
    [[nodiscard]] BufferTraffic traffic() const;
    /// All of it for one of no bytes. Throws Error kInvalidArgument.
    [[nodiscard]] ByteRange checked(ByteRange range) const;

    /// The device's copy; with `fetch` the range is valid there. Throws DeviceError.
    DriverMemory& acquire(const std::shared_ptr<DeviceDriver>& driver, ByteRange range, bool fetch);
    /// The device has written the range: it is valid nowhere else.
    void written(const DeviceDriver& driver, ByteRange range);
    /// The range is valid on the host, and with `only` nowhere else. Throws DeviceError.
    void acquire_host(ByteRange range, bool fetch, bool only);
    /// What acquire() would take on an idle device.
    [[nodiscard]] double fetch_us(const DeviceDriver& driver, ByteRange range);

    RangeMap<RangeUse>& uses() noexcept { return uses_; }

  private:
    using Places = uint64_t;
    static constexpr Places kHost = 1;
    static constexpr size_t kMostCopies = 63;
    struct Copy {
        std::shared_ptr<DeviceDriver> driver;
        std::unique_ptr<DriverMemory> memory;
        Places place = 0;
    };
    Copy& copy_on(const std::shared_ptr<DeviceDriver>& driver);
    [[nodiscard]] const Copy* find(const DeviceDriver& driver) const;
    void fetch_to_host(size_t offset, size_t size, Places& valid);

    const size_t size_;
    const std::string name_;
    void* host_;
    const bool own_;
    mutable std::mutex mutex_;
    std::vector<Copy> copies_;
    RangeMap<Places> valid_;
    BufferTraffic traffic_;
    RangeMap<RangeUse> uses_;
};

}  // namespace heddle::devices
