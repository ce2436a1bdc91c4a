// MemoryRegion: zeroed memory for a cache or a part of a segment, that costs nothing until it is written.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::memory {

class MemoryRegion {
  public:
    /// Throws Error kSystem. Of size 0, too: it has an address then.
    explicit MemoryRegion(uint64_t size);
    ~MemoryRegion();
    MemoryRegion(const MemoryRegion&) = delete;
    MemoryRegion& operator=(const MemoryRegion&) = delete;

    [[nodiscard]] std::byte* data() noexcept { return data_; }
    [[nodiscard]] uint64_t size() const noexcept { return size_; }

  private:
    std::byte* data_ = nullptr;
    uint64_t size_;
    size_t mapped_ = 0;
};

}  // namespace heddle::memory
