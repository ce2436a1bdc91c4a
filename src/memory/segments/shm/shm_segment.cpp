// Segments in the machine's memory: transfers are memcpy.
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "memory/memory_region.hpp"
#include "memory/segment.hpp"

namespace heddle::memory {
namespace {

class ShmSegment final : public Segment {
  public:
    explicit ShmSegment(const SegmentPlan& plan) : part_(plan.part_sizes[plan.self]) {}

    std::byte* address() noexcept override { return part_.data(); }
    void read(Rank, uint64_t offset, std::byte* to, uint64_t size) override {
        std::memcpy(to, part_.data() + offset, size);
    }
    void write(Rank, uint64_t offset, const std::byte* from, uint64_t size) override {
        std::memcpy(part_.data() + offset, from, size);
    }

  private:
    MemoryRegion part_;
};

}  // namespace

std::unique_ptr<Segment> create_shm_segment(const SegmentPlan& plan) {
    plan.allow_only({}, "shm");
    return std::make_unique<ShmSegment>(plan);
}

}  // namespace heddle::memory
