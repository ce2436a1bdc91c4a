#include "memory/segments/file/part_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/crc32c.hpp"
#include "heddle/error.hpp"

namespace heddle::memory {
namespace {

/// The disk is full, or the user's part of it, or a file may not be so large.
bool is_no_room(int reason) {
    return reason == ENOSPC || reason == EDQUOT || reason == EFBIG;
}

[[noreturn]] void fail(const std::string& what, const std::string& path) {
    const int reason = errno;
    throw Error(ErrorCode::kSystem, fmt::format("cannot {} {}: {}{}", what, path, std::strerror(reason),
                                                is_no_room(reason) ? "; free some room there" : ""));
}

void read_all(const Descriptor& file, const std::string& path, uint64_t offset, std::byte* to,
              uint64_t size) {
    while (size > 0) {
        const ssize_t count = ::pread(file.get(), to, size, static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail("read", path);
        if (count == 0)
            throw Error(ErrorCode::kSystem,
                        fmt::format("{} ends before offset {}: somebody has cut it short", path, offset));
        offset += static_cast<uint64_t>(count);
        to += count;
        size -= static_cast<uint64_t>(count);
    }
}

void write_all(const Descriptor& file, const std::string& path, uint64_t offset, const std::byte* from,
               uint64_t size) {
    while (size > 0) {
        const ssize_t count = ::pwrite(file.get(), from, size, static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail("write", path);
        offset += static_cast<uint64_t>(count);
        from += count;
        size -= static_cast<uint64_t>(count);
    }
}

/// So that a write that there is no room for fails before its first byte. Not all file systems can.
void make_room(const Descriptor& file, const std::string& path, uint64_t offset, uint64_t size) {
    int result = 0;
    do {
        result = ::fallocate(file.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                             static_cast<off_t>(size));
    } while (result != 0 && errno == EINTR);
    if (result != 0 && is_no_room(errno)) fail("write", path);
}

Descriptor open_file(PartFile::Access access, const std::string& path, uint64_t size) {
    const bool create = access == PartFile::Access::kCreate;
    Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0), 0600));
    if (!file.valid()) fail(create ? "create" : "open", path);
    if (!create || (size <= INT64_MAX && ::ftruncate(file.get(), static_cast<off_t>(size)) == 0)) return file;
    const int reason = size > INT64_MAX ? EFBIG : errno;
    ::unlink(path.c_str());
    errno = reason;
    fail("give its size to", path);
}

}  // namespace

/// Of blocks, against other processes.
class PartFile::BlockLock {
  public:
    BlockLock(const PartFile& part, short type, uint64_t first, uint64_t count) : part_(part), range_{} {
        range_.l_whence = SEEK_SET;
        range_.l_start = static_cast<off_t>(first);
        range_.l_len = static_cast<off_t>(count);
        range_.l_type = type;
        while (::fcntl(part_.sums_.get(), F_OFD_SETLKW, &range_) != 0)
            if (errno != EINTR) fail("lock, which checksums need,", part_.path_ + ".sums");
    }
    ~BlockLock() {
        range_.l_type = F_UNLCK;
        (void)::fcntl(part_.sums_.get(), F_OFD_SETLK, &range_);
    }
    BlockLock(const BlockLock&) = delete;
    BlockLock& operator=(const BlockLock&) = delete;

  private:
    const PartFile& part_;
    struct flock range_;
};

PartFile::PartFile(Access access, std::string path, uint64_t size, bool checksums)
    : path_(std::move(path)), size_(size), has_names_(access == Access::kCreate) {
    file_ = open_file(access, path_, size);
    if (!checksums) return;
    const uint64_t blocks = size / kBlock + 1;
    try {
        sums_ = open_file(access, path_ + ".sums", blocks * sizeof(uint32_t));
    } catch (...) {
        if (has_names_) ::unlink(path_.c_str());
        throw;
    }
    scratch_.resize(kBlock);
    sum_of_zeros_ = crc32c(scratch_);
    sum_of_last_zeros_ = crc32c({scratch_.data(), size % kBlock});
}

PartFile::~PartFile() {
    remove_names();
}

void PartFile::remove_names() noexcept {
    if (!std::exchange(has_names_, false)) return;
    ::unlink(path_.c_str());
    if (sums_.valid()) ::unlink((path_ + ".sums").c_str());
}

void PartFile::read(uint64_t offset, std::byte* to, uint64_t size) {
    if (!sums_.valid()) return read_all(file_, path_, offset, to, size);
    if (size > 0) read_checked(offset, to, size);
}

void PartFile::write(uint64_t offset, const std::byte* from, uint64_t size) {
    if (size == 0) return;
    if (sums_.valid()) return write_checked(offset, from, size);
    make_room(file_, path_, offset, size);
    write_all(file_, path_, offset, from, size);
}

void PartFile::prepare_write(uint64_t offset, uint64_t size) {
    if (size == 0) return;
    make_room(file_, path_, offset, size);
    if (!sums_.valid()) return;
    const std::lock_guard guard(mutex_);
    const uint64_t first = offset / kBlock, last = (offset + size - 1) / kBlock;
    make_room(sums_, path_ + ".sums", first * sizeof(uint32_t), (last - first + 1) * sizeof(uint32_t));
    const BlockLock lock(*this, F_RDLCK, first, last - first + 1);
    if (offset % kBlock != 0) read_block(first, read_sums(first, 1).front());
    const uint64_t end = offset + size;
    if (end != last * kBlock + length_of(last)) read_block(last, read_sums(last, 1).front());
}

uint64_t PartFile::length_of(uint64_t block) const {
    return std::min(kBlock, size_ - block * kBlock);
}

uint32_t PartFile::sum_of(uint64_t block, const std::byte* content) const {
    const uint64_t length = length_of(block);
    return crc32c({content, length}) ^ (length == kBlock ? sum_of_zeros_ : sum_of_last_zeros_);
}

std::vector<uint32_t> PartFile::read_sums(uint64_t first, uint64_t count) const {
    std::vector<uint32_t> sums(count);
    read_all(sums_, path_ + ".sums", first * sizeof(uint32_t), reinterpret_cast<std::byte*>(sums.data()),
             count * sizeof(uint32_t));
    return sums;
}

void PartFile::check(uint64_t block, const std::byte* content, uint32_t sum) const {
    const uint32_t found = sum_of(block, content);
    if (found == sum) return;
    throw Error(
        ErrorCode::kSystem,
        fmt::format("block {} of {}, bytes {} to {}, is not what was put there: its checksum is {:08x} "
                    "and should be {:08x}. The disk has changed it, or a process was killed that wrote "
                    "it; put it again as a whole",
                    block, path_, block * kBlock, block * kBlock + length_of(block) - 1, found, sum));
}

void PartFile::read_block(uint64_t block, uint32_t sum) {
    read_all(file_, path_, block * kBlock, scratch_.data(), length_of(block));
    check(block, scratch_.data(), sum);
}

void PartFile::read_checked(uint64_t offset, std::byte* to, uint64_t size) {
    const std::lock_guard guard(mutex_);
    const uint64_t first = offset / kBlock, end = (offset + size - 1) / kBlock + 1;
    const BlockLock lock(*this, F_RDLCK, first, end - first);
    const std::vector<uint32_t> sums = read_sums(first, end - first);
    for (uint64_t block = first; block < end; ++block) {
        const uint64_t start = block * kBlock, length = length_of(block);
        const uint64_t from = std::max(start, offset), until = std::min(start + length, offset + size);
        std::byte* const place = to + (from - offset);
        if (until - from == length) {
            read_all(file_, path_, start, place, length);
            check(block, place, sums[block - first]);
        } else {
            read_block(block, sums[block - first]);
            std::memcpy(place, scratch_.data() + (from - start), until - from);
        }
    }
}

void PartFile::write_checked(uint64_t offset, const std::byte* from, uint64_t size) {
    const std::lock_guard guard(mutex_);
    const uint64_t first = offset / kBlock, end = (offset + size - 1) / kBlock + 1;
    const BlockLock lock(*this, F_WRLCK, first, end - first);
    // What else is in the first and the last block must be right: its new checksum would make it so. The last
    // one is looked at before anything is written; the first one is, below.
    std::vector<uint32_t> sums = read_sums(first, end - first);
    if (end - first > 1 && offset + size < (end - 1) * kBlock + length_of(end - 1))
        read_block(end - 1, sums.back());
    const std::string path = path_ + ".sums";
    make_room(file_, path_, offset, size);
    make_room(sums_, path, first * sizeof(uint32_t), sums.size() * sizeof(uint32_t));
    // Each block is copied once, and what is written is what was summed: a client may still write to `from`.
    for (uint64_t block = first; block < end; ++block) {
        const uint64_t start = block * kBlock, length = length_of(block);
        const uint64_t begin = std::max(start, offset), until = std::min(start + length, offset + size);
        if (until - begin != length) read_block(block, sums[block - first]);
        std::memcpy(scratch_.data() + (begin - start), from + (begin - offset), until - begin);
        sums[block - first] = sum_of(block, scratch_.data());
        write_all(file_, path_, begin, scratch_.data() + (begin - start), until - begin);
    }
    write_all(sums_, path, first * sizeof(uint32_t), reinterpret_cast<const std::byte*>(sums.data()),
              sums.size() * sizeof(uint32_t));
}

}  // namespace heddle::memory
