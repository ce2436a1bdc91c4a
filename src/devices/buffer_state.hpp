// BufferState: where which range of a buffer is valid, and which tasks use it.
//
// A range is valid on a set of places: the host, which is also that of all devices that share its memory, and
// each device with memory of its own. What one device alone has comes to another straight from there, where
// its driver can do that, else by the host, which has it then, too. Valid in one place alone: modified there;
// in several: shared; in none: lost with a device. While a copy to a device is under way the range is not
// valid there yet, and is not sent once more; who changes it anywhere waits for that copy first. Its own lock
// guards the copies; the uses are guarded by the lock of all graphs.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
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
    BufferState(void* memory, size_t bytes, std::string name, std::optional<ImageShape> image = {});
    ~BufferState();

    [[nodiscard]] static BufferState& of(Buffer& buffer) { return *buffer.state_; }

    [[nodiscard]] size_t size() const noexcept { return size_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] void* host_memory() const noexcept { return host_; }
    [[nodiscard]] const ImageShape* image() const noexcept { return image_ ? &*image_ : nullptr; }
    [[nodiscard]] BufferTraffic traffic() const;
    /// All of it for one of no bytes. Throws Error kInvalidArgument.
    [[nodiscard]] ByteRange checked(ByteRange range) const;
    /// For a kernel, which uses all of an image.
    [[nodiscard]] ByteRange checked_for_kernel(ByteRange range) const;
    /// The device's kernels use the host's memory.
    [[nodiscard]] bool is_in_place_on(const DeviceInfo& device) const noexcept {
        return device.shares_host_memory && !image_;
    }

    /// The device's copy, for a kernel that is launched later. With `fetch` the range is valid there when
    /// that begins; with `change` it may write it. Throws DeviceError.
    DriverMemory& acquire(const std::shared_ptr<DeviceDriver>& driver, ByteRange range, bool fetch,
                          bool change);
    /// The device has written the range: it is valid nowhere else.
    void written(const DeviceDriver& driver, ByteRange range);
    /// The range is valid on the host, and with `only` nowhere else. Throws DeviceError.
    void acquire_host(ByteRange range, bool fetch, bool only);
    /// Until no copy of the range to a device is under way.
    void finish_uploads(ByteRange range);
    /// What acquire() would take on an idle device.
    [[nodiscard]] double fetch_us(const DeviceDriver& driver, ByteRange range);
    /// Of some of the range, devices that have failed had the only copies.
    [[nodiscard]] bool is_lost(ByteRange range);

    RangeMap<RangeUse>& uses() noexcept { return uses_; }

  private:
    using Places = uint64_t;
    static constexpr Places kHost = 1, kAll = ~Places{0};
    static constexpr size_t kMostCopies = 63;
    struct Copy {
        std::shared_ptr<DeviceDriver> driver;
        std::unique_ptr<DriverMemory> memory;
        Places place = 0;
    };
    struct Validity {
        Places valid = 0;
        Places coming = 0;      // under way to these
        bool changing = false;  // a kernel may be writing it in the host's memory
        bool operator==(const Validity&) const = default;
    };
    /// Under way.
    struct Upload {
        Places place = 0, from = 0;
        ByteRange range;
        std::unique_ptr<DriverCopy> copy;
    };
    Copy& copy_on(const std::shared_ptr<DeviceDriver>& driver);
    /// Copies on devices of runtimes that have gone; what only they have is fetched first, and where that
    /// fails they stay.
    void drop_retired();
    void send(const Copy& to, ByteRange range);
    /// The range as it is on `from`, which `to` copies from. False: it could not; then it comes by the host.
    bool send_across(const Copy& to, const Copy& from, ByteRange range);
    void note_upload(const Copy& to, Places from, ByteRange range, std::unique_ptr<DriverCopy> copy);
    /// Where a range that the host has not comes from without the host, or null.
    [[nodiscard]] const Copy* peer_with(const Validity& validity, const DeviceDriver& to) const;
    /// Of this range, those that have ended, and all that come from these places.
    void settle_uploads(ByteRange range, Places wait_for);
    [[nodiscard]] const Copy* find(const DeviceDriver& driver) const;
    void fetch_to_host(size_t offset, size_t size, Validity& validity);

    const size_t size_;
    const std::string name_;
    void* host_;
    const bool own_;
    const std::optional<ImageShape> image_;
    mutable std::mutex mutex_;
    std::vector<Copy> copies_;
    RangeMap<Validity> valid_;
    std::vector<Upload> uploads_;
    BufferTraffic traffic_;
    RangeMap<RangeUse> uses_;
};

}  // namespace heddle::devices
