// VirtualMemory: address space from the kernel, page by page, behind an interface so that tests inject its
// refusals.
//
// Each function returns 0 or -errno. Addresses and sizes are multiples of the page. No state; any thread.
#pragma once

#include <cstddef>

namespace heddle {

class VirtualMemory {
  public:
    virtual ~VirtualMemory() = default;

    /// Zeroed memory that costs nothing until it is written, in small pages.
    virtual int reserve(size_t bytes, void** address);
    virtual void release(void* address, size_t bytes);
    /// In huge pages where that can be had: for what is soon written whole. Only the speed tells.
    virtual void prefer_huge_pages(void* address, size_t bytes);
    /// Whoever touches it is stopped by SIGSEGV; discard() leaves that so. It splits no mapping, of which a
    /// process may have 65,530. -EINVAL where the kernel is older than Linux 6.13, or memory is locked and it
    /// cannot there.
    virtual int guard(void* address, size_t bytes);
    /// Gives the memory behind back: zeroes when it is next read.
    virtual int discard(void* address, size_t bytes);

    [[nodiscard]] static size_t page_bytes();
    /// Of a huge page where it is not known better.
    static constexpr size_t kHugePage = size_t{2} << 20u;
    /// The kernel's own.
    [[nodiscard]] static VirtualMemory& of_system();
};

}  // namespace heddle
