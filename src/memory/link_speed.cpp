#include "memory/link_speed.hpp"

#include <algorithm>

namespace heddle::memory {
namespace {

constexpr uint64_t kShort = 64;
/// Larger than what caches and small-message paths of transports make cheaper.
constexpr uint64_t kLong = 256 << 10;
constexpr int kTries = 4;

double best_read(Segment& segment, Rank rank, std::vector<std::byte>& to, uint64_t size, const Clock& clock) {
    Nanoseconds best = Nanoseconds::max();
    segment.read(rank, 0, to.data(), size);
    for (int i = 0; i < kTries; ++i) {
        const Time begin = clock.now();
        segment.read(rank, 0, to.data(), size);
        best = std::min(best, clock.now() - begin);
    }
    return std::chrono::duration<double>(best).count();
}

}  // namespace

LinkSpeed measure_link(Segment& segment, Rank rank, uint64_t part_size, const Clock& clock) {
    const uint64_t few = std::min(kShort, part_size), many = std::min(kLong, part_size);
    if (many == 0) return {};
    std::vector<std::byte> to(many);
    LinkSpeed speed{best_read(segment, rank, to, few, clock), 0, many};
    if (many == few) return speed;
    const double longer = best_read(segment, rank, to, many, clock) - speed.latency_s;
    speed.s_per_byte = std::max(0.0, longer / static_cast<double>(many - few));
    return speed;
}

std::vector<Rank> LinkSpeeds::unknown(const std::string& kind,
                                      const std::vector<uint64_t>& part_sizes) const {
    std::vector<Rank> ranks;
    for (Rank rank = 0; rank < part_sizes.size(); ++rank) {
        const auto known = speeds_.find({kind, rank});
        const uint64_t sample = known == speeds_.end() ? 0 : known->second.sample;
        if (sample < std::min(kLong, part_sizes[rank])) ranks.push_back(rank);
    }
    return ranks;
}

double LinkSpeeds::seconds(SegmentId segment, Rank rank, uint64_t bytes) const {
    const auto kind = kinds_.find(segment);
    if (kind == kinds_.end()) return 0;
    const auto speed = speeds_.find({kind->second, rank});
    if (speed == speeds_.end()) return 0;
    return speed->second.latency_s + static_cast<double>(bytes) * speed->second.s_per_byte;
}

std::string link_kind(const std::string& kind, const std::map<std::string, std::string>& options) {
    std::string all = kind;
    for (const auto& [name, value] : options) all += ' ' + name + '=' + value;
    return all;
}

}  // namespace heddle::memory
