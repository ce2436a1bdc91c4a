#include "memory/memory_region.hpp"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/virtual_memory.hpp"
#include "heddle/error.hpp"

namespace heddle::memory {
namespace {

constexpr unsigned kMostNodes = 1024;
/// Smaller ones would have as much beside them as in them.
constexpr size_t kLeastForHugePages = 2 * VirtualMemory::kHugePage;

[[noreturn]] void fail(uint64_t size, int reason) {
    // What is shared is a file to the kernel.
    const char* const limit = reason == EFBIG    ? "the size of files (ulimit -f)"
                              : reason == EMFILE ? "open files (ulimit -n)"
                                                 : "address space (ulimit -v)";
    throw Error(ErrorCode::kSystem,
                fmt::format("cannot have {} bytes of memory: {}; ask for less, or raise the limit of {}",
                            size, std::strerror(reason), limit));
}

/// Whole pages, and one at least; 0 where there are not so many.
size_t mapped_size(uint64_t size) {
    const size_t page = VirtualMemory::page_bytes();
    if (size > static_cast<uint64_t>(PTRDIFF_MAX) - page) return 0;
    return (static_cast<size_t>(size) / page + 1) * page;
}

}  // namespace

MemoryRegion::MemoryRegion(uint64_t size, Sharing sharing) : size_(size), mapped_(mapped_size(size)) {
    void* address = nullptr;
    int result = -ENOMEM;
    // A large cache is copied to and from, and half of a copy's time can be the look for its pages.
    const size_t skipped = mapped_ >= kLeastForHugePages ? VirtualMemory::kHugePage : 0;
    if (mapped_ > 0 && sharing == Sharing::kNone)
        result = VirtualMemory::of_system().reserve(mapped_ + skipped, &address);
    else if (mapped_ > 0)
        result = Os().make_page("heddle-cache", mapped_, sharing == Sharing::kReadOnly, &address);
    if (result < 0) fail(size, -result);
    if (sharing != Sharing::kNone) descriptor_ = Descriptor(result);
    data_ = static_cast<std::byte*>(address);
    if (sharing != Sharing::kNone || skipped == 0) return;
    reserved_ = data_;
    reserved_bytes_ = mapped_ + skipped;
    data_ += skipped - reinterpret_cast<uintptr_t>(data_) % skipped;
    VirtualMemory::of_system().prefer_huge_pages(data_, mapped_ - mapped_ % skipped);
}

MemoryRegion::MemoryRegion(Descriptor region, uint64_t size, bool writable)
    : size_(size), mapped_(mapped_size(size)), descriptor_(std::move(region)) {
    struct stat status {};
    if (::fstat(descriptor_.get(), &status) != 0) fail(size, errno);
    if (mapped_ == 0 || static_cast<uint64_t>(status.st_size) < mapped_) fail(size, EOVERFLOW);
    void* const address =
        ::mmap(nullptr, mapped_, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, descriptor_.get(), 0);
    if (address == MAP_FAILED) fail(size, errno);
    data_ = static_cast<std::byte*>(address);
}

MemoryRegion::~MemoryRegion() {
    if (reserved_ != nullptr)
        VirtualMemory::of_system().release(reserved_, reserved_bytes_);
    else
        VirtualMemory::of_system().release(data_, mapped_);
}

void MemoryRegion::prefer_node(unsigned node) {
    constexpr unsigned kBits = 8 * sizeof(unsigned long);
    unsigned long mask[kMostNodes / kBits] = {};
    const bool known = node < kMostNodes;
    if (known) mask[node / kBits] = 1ul << node % kBits;
    // The kernel reads one bit less than it is told.
    if (known && ::syscall(SYS_mbind, data_, mapped_, MPOL_PREFERRED, mask, kMostNodes + 1, 0) == 0) return;
    if (!known || errno == EINVAL)
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format("there is no memory on NUMA node {}: heddle info names those there are", node));
    // A kernel without NUMA has one node.
    if (errno == ENOSYS && node == 0) return;
    throw Error(ErrorCode::kSystem,
                fmt::format("memory cannot be placed on NUMA node {}: {}", node, std::strerror(errno)));
}

}  // namespace heddle::memory
