// Buffer: bytes that kernels of any device read and write, coherent over devices by range.
//
// Which parts are valid where is known by range: what one device has written is copied to another that reads
// it, once for each version, and nothing else is. What the next task of a device reads is copied while the
// one before runs. Devices that share the host's memory are never copied to. All functions may be called by
// any thread; those that read or write wait for the submitted tasks that use the range, but for a task's own
// callbacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "heddle/device_image.hpp"
#include "heddle/export.hpp"

namespace heddle::devices {

class BufferState;

/// Bytes offset .. offset + size - 1 of a buffer.
struct ByteRange {
    size_t offset = 0;
    size_t size = 0;
};

/// What heddle copied for a buffer so far.
struct BufferTraffic {
    uint64_t to_devices = 0;       ///< copies of a range from the host to a device
    uint64_t from_devices = 0;     ///< copies of a range back to the host
    uint64_t between_devices = 0;  ///< copies of a range from one device to another
    uint64_t bytes = 0;            ///< in all of them
};

class HEDDLE_API Buffer {
  public:
    /// Zeros. The name is for errors. Throws Error: kInvalidArgument for no bytes, kLimit.
    explicit Buffer(size_t bytes, std::string name = {});
    /// The caller's own memory, which stays there as long as the buffer. From the submission of a task that
    /// uses it the caller looks at it by host() alone, and changes it by host(true): the newest copy may be a
    /// device's, and stays there also when the buffer goes. Kernels of CPU devices work in it: it is to be
    /// aligned for the types that they use, as OpenCL says (32 bytes for a double4, and up to
    /// 128; what malloc() gives is for 16).
    Buffer(void* memory, size_t bytes, std::string name = {});
    /// Images. Devices copy them as a whole, those that share the host's memory, too; tasks that use one run
    /// where DeviceInfo::has_images. Throw as the two above.
    explicit Buffer(const ImageShape& shape, std::string name = {});
    Buffer(void* memory, const ImageShape& shape, std::string name = {});
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    [[nodiscard]] size_t size() const noexcept;
    [[nodiscard]] const std::string& name() const noexcept;
    /// Null where it is none.
    [[nodiscard]] const ImageShape* image() const noexcept;

    /// Copies in or out. Throw Error kInvalidArgument for a range outside, DeviceError where the only copy
    /// was on a device that died.
    void write(const void* from, size_t bytes, size_t offset = 0);
    void read(void* to, size_t bytes, size_t offset = 0);
    /// The host's memory of the whole buffer, valid until the next task that writes to it is submitted.
    /// What the caller writes there is seen only with `for_writing`. Throws as read().
    [[nodiscard]] void* host(bool for_writing = false);

    [[nodiscard]] BufferTraffic traffic() const;

  private:
    friend class BufferState;
    std::unique_ptr<BufferState> state_;
};

enum class AccessMode { kIn, kOut, kInOut };

/// What a kernel does with a range of a buffer, for an image all of it. The kernel gets the whole buffer all
/// the same.
struct Access {
    std::shared_ptr<Buffer> buffer;
    AccessMode mode = AccessMode::kInOut;
    ByteRange range;  ///< of no bytes: all of it
};

/// It reads the range.
[[nodiscard]] inline Access in(std::shared_ptr<Buffer> buffer, ByteRange range = {}) {
    return {std::move(buffer), AccessMode::kIn, range};
}
/// It writes each byte of the range, whatever was there.
[[nodiscard]] inline Access out(std::shared_ptr<Buffer> buffer, ByteRange range = {}) {
    return {std::move(buffer), AccessMode::kOut, range};
}
[[nodiscard]] inline Access inout(std::shared_ptr<Buffer> buffer, ByteRange range = {}) {
    return {std::move(buffer), AccessMode::kInOut, range};
}

}  // namespace heddle::devices
