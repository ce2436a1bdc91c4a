#include "base/virtual_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

namespace heddle {

int VirtualMemory::reserve(size_t bytes, void** address) {
    void* const mapping = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapping == MAP_FAILED) return -errno;
    // One huge page would be the memory of dozens of stacks. A kernel without huge pages says EINVAL, and is
    // right.
    (void)::madvise(mapping, bytes, MADV_NOHUGEPAGE);
    *address = mapping;
    return 0;
}

void VirtualMemory::prefer_huge_pages(void* address, size_t bytes) {
    (void)::madvise(address, bytes, MADV_HUGEPAGE);
}

void VirtualMemory::release(void* address, size_t bytes) {
    ::munmap(address, bytes);
}

int VirtualMemory::guard(void* address, size_t bytes) {
    return ::madvise(address, bytes, MADV_GUARD_INSTALL) == 0 ? 0 : -errno;
}

int VirtualMemory::discard(void* address, size_t bytes) {
    return ::madvise(address, bytes, MADV_DONTNEED) == 0 ? 0 : -errno;
}

size_t VirtualMemory::page_bytes() {
    static const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}

VirtualMemory& VirtualMemory::of_system() {
    // Never destroyed: threads of engines may still want stacks while the process exits.
    static auto& system = *new VirtualMemory;
    return system;
}

}  // namespace heddle
