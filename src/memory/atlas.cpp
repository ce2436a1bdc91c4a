#include "memory/atlas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace heddle::memory {
namespace {

constexpr uint32_t kMostVersions = 65'536;

}  // namespace

MemoryError::MemoryError(MemoryErrorCode code, const std::string& message)
    : Error(code == MemoryErrorCode::kTransfer ? ErrorCode::kSystem
            : code == MemoryErrorCode::kCacheFull || code == MemoryErrorCode::kSegmentFull ||
                    code == MemoryErrorCode::kLargerThanCache
                ? ErrorCode::kLimit
                : ErrorCode::kInvalidArgument,
            message),
      code_(code) {}

void Atlas::add_segment(SegmentId id, const std::vector<uint64_t>& part_sizes) {
    Segment added;
    for (const uint64_t size : part_sizes) added.parts.emplace_back(size);
    if (!segments_.emplace(id, std::move(added)).second)
        throw MemoryError(MemoryErrorCode::kUnknown, fmt::format("there is a segment {} already", id.value));
}

void Atlas::remove_segment(SegmentId id) {
    if (const size_t count = segment(id).allocations; count > 0)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("segment {} holds {} allocation(s): free them before it is deleted", id.value,
                                count));
    segments_.erase(id);
}

const Atlas::Segment& Atlas::segment(SegmentId id) const {
    const auto found = segments_.find(id);
    if (found == segments_.end())
        throw MemoryError(MemoryErrorCode::kUnknown,
                          fmt::format("there is no segment {}: it was deleted, or never created", id.value));
    return found->second;
}

std::vector<SegmentId> Atlas::segments() const {
    std::vector<SegmentId> all;
    for (const auto& [id, segment] : segments_) all.push_back(id);
    return all;
}

std::vector<DataId> Atlas::allocations() const {
    std::vector<DataId> all;
    for (const auto& [id, allocation] : allocations_) all.push_back(id);
    return all;
}

uint64_t Atlas::size_of(SegmentId id) const {
    uint64_t all = 0;
    for (const Space& part : segment(id).parts) all += part.size();
    return all;
}

std::vector<uint64_t> Atlas::free_bytes(SegmentId id, const std::vector<Rank>& gone) const {
    std::vector<uint64_t> free_bytes;
    for (const Space& part : segment(id).parts) free_bytes.push_back(part.free_bytes());
    for (const Rank rank : gone) free_bytes.at(rank) = 0;
    return free_bytes;
}

void Atlas::allocate(DataId id, uint64_t size, SegmentId in, const Distribution& distribution,
                     const std::string& name, const std::vector<Rank>& gone) {
    const std::vector<uint64_t> free_bytes = this->free_bytes(in, gone);
    const uint64_t all = std::accumulate(free_bytes.begin(), free_bytes.end(), uint64_t{0});
    if (size > all)
        throw MemoryError(
            MemoryErrorCode::kSegmentFull,
            fmt::format("segment {} has {} bytes left, and {} are asked for: free some, or create a "
                        "larger segment",
                        in.value, all, size));
    if (allocations_.contains(id))
        throw Error(ErrorCode::kInvalidArgument, fmt::format("there is an allocation {} already", id.value));
    const std::vector<Share> shares = distribution(size, free_bytes);
    check_shares(shares, size, free_bytes.size(), name);
    std::vector<uint64_t> wanted(free_bytes.size());
    for (const Share& share : shares) wanted[share.rank] += share.size;
    for (const Rank rank : gone)
        if (wanted[rank] > 0)
            throw Error(ErrorCode::kUnavailable,
                        fmt::format("rank {} is gone, and the distribution \"{}\" places {} bytes there",
                                    rank, name, wanted[rank]));
    for (Rank rank = 0; rank < wanted.size(); ++rank)
        if (wanted[rank] > free_bytes[rank])
            throw MemoryError(
                MemoryErrorCode::kSegmentFull,
                fmt::format("segment {} has {} bytes left on rank {}, and the distribution \"{}\" places {} "
                            "there: spread the data otherwise, or create a larger segment",
                            in.value, free_bytes[rank], rank, name, wanted[rank]));
    Segment& segment = segments_.at(in);
    std::vector<Extent> extents;
    uint64_t offset = 0;
    for (const Share& share : shares) {
        for (const Range& taken : segment.parts[share.rank].take_in_pieces(share.size)) {
            extents.push_back({{offset, taken.size}, share.rank, taken.offset});
            offset += taken.size;
        }
    }
    allocations_.emplace(id, Allocation{in, size, {std::move(extents)}});
    ++segment.allocations;
}

void Atlas::free(DataId id) {
    const Allocation& freed = allocation(id);
    Segment& segment = segments_.at(freed.segment);
    for (const std::vector<Extent>& slot : freed.slots)
        for (const Extent& extent : slot)
            segment.parts[extent.home].give_back({extent.part_offset, extent.data.size});
    --segment.allocations;
    allocations_.erase(id);
}

void Atlas::reserve_versions(DataId id, uint32_t count) {
    (void)allocation(id);
    Allocation& grown = allocations_.at(id);
    if (count <= grown.slots.size()) return;
    if (count > kMostVersions)
        throw Error(ErrorCode::kLimit, fmt::format("{} versions of allocation {} at once are more than {}",
                                                   count, id.value, kMostVersions));
    Segment& segment = segments_.at(grown.segment);
    const uint64_t more = count - grown.slots.size();
    std::vector<uint64_t> on_rank(segment.parts.size());
    for (const Extent& extent : grown.slots.front()) on_rank[extent.home] += extent.data.size;
    for (Rank rank = 0; rank < on_rank.size(); ++rank)
        if (on_rank[rank] > 0 && more > segment.parts[rank].free_bytes() / on_rank[rank])
            throw MemoryError(
                MemoryErrorCode::kSegmentFull,
                fmt::format("segment {} has {} bytes left on rank {}, and {} version(s) more of allocation "
                            "{} take {} bytes each there: retain fewer, or create a larger segment",
                            grown.segment.value, segment.parts[rank].free_bytes(), rank, more, id.value,
                            on_rank[rank]));
    while (grown.slots.size() < count) {
        std::vector<Extent> slot;
        for (const Extent& extent : grown.slots.front()) {
            uint64_t offset = extent.data.offset;
            for (const Range& taken : segment.parts[extent.home].take_in_pieces(extent.data.size)) {
                slot.push_back({{offset, taken.size}, extent.home, taken.offset});
                offset += taken.size;
            }
        }
        grown.slots.push_back(std::move(slot));
    }
}

const Atlas::Allocation& Atlas::allocation(DataId id) const {
    const auto found = allocations_.find(id);
    if (found == allocations_.end())
        throw MemoryError(MemoryErrorCode::kUnknown,
                          fmt::format("there is no allocation {}: it was freed, or never made", id.value));
    return found->second;
}

const Atlas::Allocation& Atlas::checked(const GlobalRange& global) const {
    const Allocation& in = allocation(global.data);
    if (!Range{0, in.size}.contains(global.range))
        throw MemoryError(MemoryErrorCode::kOutside,
                          fmt::format("{} bytes from offset {} on are not all in allocation {}, which has {}",
                                      global.range.size, global.range.offset, global.data.value, in.size));
    return in;
}

std::vector<Atlas::Extent>::const_iterator Atlas::first_extent(const std::vector<Extent>& extents,
                                                               uint64_t offset) {
    return std::prev(
        std::ranges::upper_bound(extents, offset, {}, [](const Extent& e) { return e.data.offset; }));
}

std::vector<Piece> Atlas::pieces(const GlobalRange& global, uint32_t slot) const {
    std::vector<Piece> result;
    for_each_piece(global, slot, [&](const Piece& piece) { result.push_back(piece); });
    return result;
}

std::optional<SegmentPlace> Atlas::only_place(const GlobalRange& global) const {
    const Allocation& in = checked(global);
    if (global.range.size == 0 || in.slots.size() > 1) return {};
    const auto extent = first_extent(in.slots.front(), global.range.offset);
    if (!extent->data.contains(global.range)) return {};
    return SegmentPlace{in.segment, extent->home,
                        extent->part_offset + (global.range.offset - extent->data.offset)};
}

}  // namespace heddle::memory
