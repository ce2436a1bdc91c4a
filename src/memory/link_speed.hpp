// What bytes cost between this rank and the parts of segments on each rank, measured by reading some when the
// first segment of a kind is created.
//
// One thread at a time, but for measure_link().
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "memory/segment.hpp"

namespace heddle::memory {

/// Of a transfer: so long, and so much longer for each byte. In seconds.
struct LinkSpeed {
    double latency_s = 0;
    double s_per_byte = 0;
    /// How many bytes at once it was measured with.
    uint64_t sample = 0;
};

/// The best of several reads of the part, after one that nobody counts. Throws as Segment::read.
[[nodiscard]] LinkSpeed measure_link(Segment& segment, Rank rank, uint64_t part_size, const Clock& clock);

class LinkSpeeds {
  public:
    /// `kind` tells segments with other speeds apart. The ranks whose links such a segment is to measure:
    /// those that are not known yet, or by shorter samples.
    [[nodiscard]] std::vector<Rank> unknown(const std::string& kind,
                                            const std::vector<uint64_t>& part_sizes) const;
    void learn(const std::string& kind, Rank rank, const LinkSpeed& speed) { speeds_[{kind, rank}] = speed; }

    void add_segment(SegmentId segment, const std::string& kind) { kinds_[segment] = kind; }
    void remove_segment(SegmentId segment) { kinds_.erase(segment); }
    /// For so many bytes between this rank and that rank's part; 0 where it is not known.
    [[nodiscard]] double seconds(SegmentId segment, Rank rank, uint64_t bytes) const;

  private:
    std::map<std::pair<std::string, Rank>, LinkSpeed> speeds_;
    std::map<SegmentId, std::string> kinds_;
};

/// The kind of a segment that has these options, for LinkSpeeds.
[[nodiscard]] std::string link_kind(const std::string& kind,
                                    const std::map<std::string, std::string>& options);

}  // namespace heddle::memory
