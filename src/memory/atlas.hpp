// Atlas: which bytes of which allocation lie where. Every rank has the same one, since all apply the same
// changes in the same order.
//
// Knows nothing of the memory itself. One thread at a time. Throws MemoryError for ids that are not there and
// ranges outside.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "heddle/memory_types.hpp"
#include "memory/distribution.hpp"
#include "memory/space.hpp"

namespace heddle::memory {

/// A part of a global range that lies in one piece on one rank.
struct Piece {
    Rank home = 0;
    GlobalRange global;
    /// In the home's part of the segment.
    uint64_t part_offset = 0;
};

/// Where in a segment something begins.
struct SegmentPlace {
    SegmentId segment;
    Rank home = 0;
    /// In the home's part of the segment.
    uint64_t part_offset = 0;
};

class Atlas {
  public:
    /// A segment of which each rank has so many bytes.
    void add_segment(SegmentId id, const std::vector<uint64_t>& part_sizes);
    /// Throws kInvalidArgument where data are allocated in it.
    void remove_segment(SegmentId id);
    [[nodiscard]] bool has_segment(SegmentId id) const { return segments_.contains(id); }

    /// On each rank; of those that are gone, none. Throws kUnknown.
    [[nodiscard]] std::vector<uint64_t> free_bytes(SegmentId id, const std::vector<Rank>& gone = {}) const;

    /// Throws kSegmentFull, kUnavailable for a share on a rank that is gone, and kInvalidArgument where the
    /// shares are not the data; there is then nothing of it. Size 0 is an allocation, too. `name` of the
    /// distribution is for messages.
    void allocate(DataId id, uint64_t size, SegmentId segment, const Distribution& distribution,
                  const std::string& name = "unnamed", const std::vector<Rank>& gone = {});
    void free(DataId id);
    /// The allocation has at least `count` slots: so many times its room, on the same ranks. Throws
    /// kSegmentFull, and kLimit; nothing has changed then.
    void reserve_versions(DataId id, uint32_t count);
    [[nodiscard]] uint32_t versions(DataId id) const {
        return static_cast<uint32_t>(allocation(id).slots.size());
    }

    [[nodiscard]] bool has_data(DataId id) const { return allocations_.contains(id); }
    [[nodiscard]] SegmentId segment_of(DataId id) const { return allocation(id).segment; }
    [[nodiscard]] uint64_t size_of(DataId id) const { return allocation(id).size; }
    [[nodiscard]] std::vector<SegmentId> segments() const;
    [[nodiscard]] std::vector<DataId> allocations() const;
    /// Of all ranks' parts together.
    [[nodiscard]] uint64_t size_of(SegmentId id) const;
    /// In ascending order; none for a range without a byte.
    [[nodiscard]] std::vector<Piece> pieces(const GlobalRange& global, uint32_t slot = 0) const;
    template <class Function>
    void for_each_piece(const GlobalRange& global, uint32_t slot, Function function) const;
    /// Of a range in one piece, for good: nothing where it has no bytes, or may have several versions, of
    /// which the newest one moves.
    [[nodiscard]] std::optional<SegmentPlace> only_place(const GlobalRange& global) const;

  private:
    struct Segment {
        std::vector<Space> parts;
        size_t allocations = 0;
    };
    struct Extent {
        Range data;
        Rank home;
        uint64_t part_offset;
    };
    struct Allocation {
        SegmentId segment;
        uint64_t size;
        /// Where its bytes lie: there is one slot, and one for each version more that may be there at once.
        std::vector<std::vector<Extent>> slots;
    };

    [[nodiscard]] const Segment& segment(SegmentId id) const;
    [[nodiscard]] const Allocation& allocation(DataId id) const;
    /// Throws where the range is not in the allocation.
    [[nodiscard]] const Allocation& checked(const GlobalRange& global) const;
    [[nodiscard]] static std::vector<Extent>::const_iterator first_extent(const std::vector<Extent>& extents,
                                                                          uint64_t offset);

    std::map<SegmentId, Segment> segments_;
    std::map<DataId, Allocation> allocations_;
};

template <class Function>
void Atlas::for_each_piece(const GlobalRange& global, uint32_t slot, Function function) const {
    const std::vector<Extent>& extents = checked(global).slots.at(slot);
    if (global.range.size == 0) return;
    for (auto extent = first_extent(extents, global.range.offset);
         extent != extents.end() && extent->data.offset < global.range.end(); ++extent) {
        const uint64_t from = std::max(extent->data.offset, global.range.offset);
        const uint64_t to = std::min(extent->data.end(), global.range.end());
        function(Piece{extent->home,
                       {global.data, {from, to - from}},
                       extent->part_offset + (from - extent->data.offset)});
    }
}

}  // namespace heddle::memory
