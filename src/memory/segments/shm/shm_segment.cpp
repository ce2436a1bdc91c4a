// Segments in the machine's memory: each rank's part is a memfd, which the others map by way of /proc, so
// that nothing is left over whoever dies. Transfers are memcpy.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/os.hpp"
#include "memory/segment.hpp"
#include "topology/cgroup.hpp"

namespace heddle::memory {
namespace {

[[noreturn]] void fail(const std::string& what) {
    throw Error(ErrorCode::kSystem, fmt::format("{}: {}", what, std::strerror(errno)));
}

/// A part as it is seen from here.
class Mapping {
  public:
    Mapping() = default;
    Mapping(int fd, uint64_t size, const std::string& what) : size_(static_cast<size_t>(size)) {
        if (size_ == 0) return;
        void* const address = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (address == MAP_FAILED) fail(fmt::format("cannot map {} bytes of {}", size, what));
        data_ = static_cast<std::byte*>(address);
    }
    Mapping(Mapping&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Mapping() {
        if (data_ != nullptr) ::munmap(data_, size_);
    }
    [[nodiscard]] std::byte* data() const noexcept { return data_; }

  private:
    std::byte* data_ = nullptr;
    size_t size_ = 0;
};

/// What is more than the machine has would be had, and whoever fills it ended.
void check_room(const std::vector<uint64_t>& parts) {
    uint64_t left = read_memory_room(SystemFiles()).total;
    const uint64_t total = left;
    for (const uint64_t part : parts) {
        if (part > left)
            throw Error(ErrorCode::kLimit,
                        fmt::format("shared memory for parts of {} bytes is more than the memory that this "
                                    "process may have, {}: ask for less, or for a segment of files",
                                    fmt::join(parts, " + "), total));
        left -= part;
    }
}

class ShmSegment final : public Segment {
  public:
    explicit ShmSegment(const SegmentPlan& plan)
        : sizes_(plan.part_sizes),
          self_(plan.self),
          own_(::memfd_create("heddle-segment", MFD_CLOEXEC)),
          parts_(plan.part_sizes.size()) {
        check_room(sizes_);
        const uint64_t size = sizes_[self_];
        if (!own_.valid()) fail("cannot make shared memory");
        if (size > INT64_MAX || ::ftruncate(own_.get(), static_cast<off_t>(size)) != 0)
            fail(fmt::format("cannot have {} bytes of shared memory", size));
        parts_[self_] = Mapping(own_.get(), size, "shared memory");
    }

    std::byte* address() noexcept override { return parts_[self_].data(); }
    std::string contact() const override { return fmt::format("/proc/{}/fd/{}", ::getpid(), own_.get()); }
    void attach(const std::vector<std::string>& contacts) override {
        for (Rank rank = 0; rank < contacts.size(); ++rank) {
            if (rank == self_) continue;
            const Descriptor part(::open(contacts[rank].c_str(), O_RDWR | O_CLOEXEC));
            if (!part.valid())
                fail(fmt::format("cannot open rank {}'s part of a segment, {}", rank, contacts[rank]));
            parts_[rank] = Mapping(part.get(), sizes_[rank], contacts[rank]);
        }
    }
    void read(Rank rank, uint64_t offset, std::byte* to, uint64_t size) override {
        std::memcpy(to, parts_[rank].data() + offset, size);
    }
    void write(Rank rank, uint64_t offset, const std::byte* from, uint64_t size) override {
        std::memmove(parts_[rank].data() + offset, from, size);  // it may be of the same part
    }

  private:
    std::vector<uint64_t> sizes_;
    Rank self_;
    Descriptor own_;
    std::vector<Mapping> parts_;
};

}  // namespace

std::unique_ptr<Segment> create_shm_segment(const SegmentPlan& plan) {
    plan.allow_only({}, "shm");
    return std::make_unique<ShmSegment>(plan);
}

}  // namespace heddle::memory
