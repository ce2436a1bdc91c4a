// MemoryRegion: zeroed memory for a cache or a part of a segment, that costs nothing until it is written.
//
// What is shared has a descriptor to be given to other processes, and can neither grow nor shrink, so that
// nobody is stopped by SIGBUS whatever the others do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/os.hpp"

namespace heddle::memory {

class MemoryRegion {
  public:
    enum class Sharing {
        kNone,
        kWritable,  ///< who gets the descriptor may write, too
        kReadOnly,  ///< nobody but this process can ever map it for writing
    };

    /// Throws Error kSystem. Of size 0, too: it has an address then.
    explicit MemoryRegion(uint64_t size, Sharing sharing = Sharing::kNone);
    /// That of another process. Throws Error kSystem, also where it is smaller.
    MemoryRegion(Descriptor region, uint64_t size, bool writable);
    ~MemoryRegion();
    MemoryRegion(const MemoryRegion&) = delete;
    MemoryRegion& operator=(const MemoryRegion&) = delete;

    [[nodiscard]] std::byte* data() noexcept { return data_; }
    [[nodiscard]] uint64_t size() const noexcept { return size_; }
    [[nodiscard]] int descriptor() const noexcept { return descriptor_.get(); }
    /// What is not written yet is to be on that NUMA node, where there is room. Throws kInvalidArgument where
    /// there is no such node, kSystem.
    void prefer_node(unsigned node);

  private:
    std::byte* data_ = nullptr;
    uint64_t size_;
    size_t mapped_ = 0;
    std::byte* reserved_ = nullptr;  ///< of which data() is a part; null: data() is all
    size_t reserved_bytes_ = 0;
    Descriptor descriptor_;
};

}  // namespace heddle::memory
