// The plug-in: segments of kind gaspi, whose parts are GASPI segments. GPI-2's licence is the GPL, version 3,
// and so is that of what is linked with it: heddle's build makes this one only where it is asked to.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "memory/segment_plug_in.hpp"
#include "memory/segments/gaspi/gaspi_runtime.hpp"

namespace heddle::memory {
namespace {

class GaspiSegment final : public Segment {
  public:
    explicit GaspiSegment(const SegmentPlan& plan)
        : self_(plan.self),
          size_(plan.part_sizes[plan.self]),
          contact_(gaspi_contact(static_cast<Rank>(plan.part_sizes.size()))) {}
    ~GaspiSegment() override {
        if (gaspi_ == nullptr) return;
        (void)gaspi_segment_delete(number_);
        gaspi_->give_back(number_);
    }
    GaspiSegment(const GaspiSegment&) = delete;
    GaspiSegment& operator=(const GaspiSegment&) = delete;

    std::byte* address() noexcept override { return part_; }
    std::string contact() const override { return contact_; }
    /// By all ranks.
    void attach(const std::vector<std::string>& contacts) override {
        Gaspi& gaspi = Gaspi::started(self_, contacts);
        number_ = gaspi.take_number();
        gaspi_ = &gaspi;
        check_gaspi(gaspi_segment_create(number_, std::max<uint64_t>(1, size_), GASPI_GROUP_ALL, kPatienceMs,
                                         GASPI_MEM_INITIALIZED),
                    fmt::format("gaspi_segment_create of {} bytes", size_));
        gaspi_pointer_t memory = nullptr;
        check_gaspi(gaspi_segment_ptr(number_, &memory), "gaspi_segment_ptr");
        part_ = static_cast<std::byte*>(memory);
    }
    void read(Rank rank, uint64_t offset, std::byte* to, uint64_t size) override {
        if (rank == self_)
            std::memcpy(to, part_ + offset, size);
        else
            gaspi_->read(number_, rank, offset, to, size);
    }
    void write(Rank rank, uint64_t offset, const std::byte* from, uint64_t size) override {
        if (rank == self_)
            std::memmove(part_ + offset, from, size);  // it may be of the same part
        else
            gaspi_->write(number_, rank, offset, from, size);
    }

  private:
    Rank self_;
    uint64_t size_;
    std::string contact_;
    Gaspi* gaspi_ = nullptr;
    gaspi_segment_id_t number_ = 0;
    std::byte* part_ = nullptr;
};

std::unique_ptr<Segment> create(const SegmentPlan& plan) {
    plan.allow_only({}, "gaspi");
    return std::make_unique<GaspiSegment>(plan);
}

/// GASPI's ranks are started as heddle's are.
std::unique_ptr<RankGroup> ranks(bool, std::optional<int>) {
    return nullptr;
}

void start(bool) {}

const SegmentPlugIn kPlugIn{{"gaspi", create}, gaspi_version_text, ranks, start};

}  // namespace
}  // namespace heddle::memory

extern "C" __attribute__((visibility("default"))) const heddle::memory::SegmentPlugIn* heddle_segment() {
    return &heddle::memory::kPlugIn;
}
