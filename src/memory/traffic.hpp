// Traffic: how much one rank has moved, by segment and by link.
//
// One thread at a time. What a segment has moved goes with it; its link keeps it.
#pragma once

#include <map>
#include <string>

#include "heddle/memory_types.hpp"
#include "memory/transfer.hpp"

namespace heddle::memory {

class Traffic {
  public:
    void add_segment(SegmentId segment, const std::string& kind) {
        segments_[segment] = {kind, {}, &links_[kind]};
    }
    void remove_segment(SegmentId segment) { segments_.erase(segment); }
    /// The transfer has ended well.
    void count(const Transfer& transfer);
    /// Appends what there is.
    void report(Counters& counters) const;

  private:
    using OfRanks = std::map<Rank, TransferCounters>;
    struct OfSegment {
        std::string kind;
        TransferCounters moved;
        OfRanks* links = nullptr;
    };
    std::map<SegmentId, OfSegment> segments_;
    std::map<std::string, OfRanks> links_;  // by kind
    uint64_t bytes_copied_ = 0;
};

}  // namespace heddle::memory
