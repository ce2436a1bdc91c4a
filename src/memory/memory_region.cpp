#include "memory/memory_region.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/virtual_memory.hpp"
#include "heddle/error.hpp"

namespace heddle::memory {

MemoryRegion::MemoryRegion(uint64_t size) : size_(size) {
    const size_t page = VirtualMemory::page_bytes();
    void* address = nullptr;
    const bool fits = size <= SIZE_MAX - page;
    mapped_ = fits ? (static_cast<size_t>(size) / page + 1) * page : 0;
    if (const int result = fits ? VirtualMemory::of_system().reserve(mapped_, &address) : -ENOMEM;
        result != 0)
        throw Error(
            ErrorCode::kSystem,
            fmt::format(
                "cannot have {} bytes of memory: {}; ask for less, or raise the limit of address space "
                "(ulimit -v)",
                size, std::strerror(-result)));
    data_ = static_cast<std::byte*>(address);
}

MemoryRegion::~MemoryRegion() {
    VirtualMemory::of_system().release(data_, mapped_);
}

}  // namespace heddle::memory
