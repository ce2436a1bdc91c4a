// What the directory/cache (heddle/memory.hpp) speaks of: segments, allocations, global and local ranges, and
// the operations on them (seed 001 section 4).
//
// Plain values; any thread. Offsets and sizes are in bytes.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "heddle/error.hpp"

namespace heddle::memory {

/// A server of a group of servers, from 0 on.
using Rank = uint32_t;
/// A mark that put_and_set_tag leaves on what it writes.
using Tag = uint64_t;

/// Names a segment in all ranks.
struct SegmentId {
    uint64_t value = 0;
    friend constexpr auto operator<=>(SegmentId, SegmentId) = default;
};
/// Names an allocation in all ranks.
struct DataId {
    uint64_t value = 0;
    friend constexpr auto operator<=>(DataId, DataId) = default;
};
/// Names a cache of one rank, which only clients of that rank's server can use. 0: none.
struct CacheId {
    uint64_t value = 0;
    friend constexpr auto operator<=>(CacheId, CacheId) = default;
};

struct Range {
    uint64_t offset = 0;
    uint64_t size = 0;

    [[nodiscard]] constexpr uint64_t end() const noexcept { return offset + size; }
    [[nodiscard]] constexpr bool contains(const Range& other) const noexcept {
        return offset <= other.offset && other.size <= size && other.offset - offset <= size - other.size;
    }
    /// Ranges without a byte overlap with none.
    [[nodiscard]] constexpr bool overlaps(const Range& other) const noexcept {
        return size > 0 && other.size > 0 && offset < other.end() && other.offset < end();
    }
    /// What is in both, where they overlap.
    [[nodiscard]] constexpr Range operator&(const Range& other) const noexcept {
        const uint64_t begin = offset > other.offset ? offset : other.offset;
        return {begin, (end() < other.end() ? end() : other.end()) - begin};
    }
    friend constexpr auto operator<=>(const Range&, const Range&) = default;
};

/// Some bytes of an allocation, wherever they lie.
struct GlobalRange {
    DataId data;
    Range range;
    friend constexpr auto operator<=>(const GlobalRange&, const GlobalRange&) = default;
};

/// Some bytes at hand: in a cache, or, of a direct one, in the segment itself. A copy of it names the same
/// bytes; `range` of a copy may be made smaller within it, to put a part. Valid until it is released.
struct LocalRange {
    CacheId cache;
    uint64_t id = 0;
    std::byte* base = nullptr;
    Range range;
};
/// To be read.
struct ConstLocalRange : LocalRange {
    [[nodiscard]] const std::byte* pointer() const noexcept { return base + range.offset; }
};
/// To be read and written by its owner alone.
struct MutableLocalRange : LocalRange {
    [[nodiscard]] std::byte* pointer() const noexcept { return base + range.offset; }
};

namespace op {

/// Reserves room in a cache: MutableLocalRange. The bytes are what they happen to be.
struct Allocate {
    uint64_t size = 0;
    CacheId cache;
};
/// Ends the use of a local range.
struct Release {
    LocalRange local;
};
/// A copy to read, in the cache: ConstLocalRange. Taken from the cache where it has a valid copy. What it
/// shows was in the range at one moment during the call, and stays so while it is held.
struct GetConst {
    GlobalRange global;
    CacheId cache;
    /// Only when all of the range was put with this tag.
    std::optional<Tag> tag = {};
    /// The bytes of the segment themselves where they lie in one piece on this rank. No snapshot: a put does
    /// not wait for it.
    bool prefer_direct = false;
};
/// A copy of one's own, in the cache: MutableLocalRange. Nobody else sees it before it is put.
struct GetMutable {
    GlobalRange global;
    CacheId cache;
    std::optional<Tag> tag = {};
    bool prefer_direct = false;
};
/// As GetMutable; and nobody else gets or puts the range before it is put or released.
struct GetExclusive {
    GlobalRange global;
    CacheId cache;
};
/// Writes a local range, or a part of it, to a global one of the same size: nothing. When it is done, no
/// cache holds an older copy.
struct Put {
    LocalRange source;
    GlobalRange global;
    /// The range is marked with it; without one an earlier mark goes.
    std::optional<Tag> tag = {};
    /// The source is released with it, unless it fails; where it was all of a mutable one it stays in its
    /// cache as a copy. Until it has ended nobody else may use the source.
    bool release = false;
    /// Writes to these bytes, whose ever they are, wait until so many gets with the tag have read each of
    /// them, or retain them; see docs/COHERENCE.md. Needs a tag.
    uint32_t readers = 0;
    /// So many earlier versions of each byte that are still to be read stay, and are found by their tags;
    /// this put waits only where there are more. Room for all is taken in the segment: see
    /// Client::reserve_versions.
    uint32_t retain = 0;
};

}  // namespace op

using Operation =
    std::variant<op::Allocate, op::Release, op::GetConst, op::GetMutable, op::GetExclusive, op::Put>;
using OperationResult = std::variant<std::monostate, ConstLocalRange, MutableLocalRange>;

/// What operations would take on a rank; see Client::transfer_costs.
struct TransferCost {
    Rank rank = 0;
    double seconds = 0;
};

/// Where a piece of a range is: the rank whose memory it is in, and those that have copies of some of it.
struct DataLocality {
    GlobalRange range;
    Rank home = 0;
    std::set<Rank> copies;
};

/// What all ranks have together at a moment.
struct Inventory {
    struct Segment {
        SegmentId id;
        std::string kind;
        std::map<std::string, std::string> options;
        uint64_t size = 0;
    };
    struct Allocation {
        DataId id;
        SegmentId segment;
        uint64_t size = 0;
        /// "" for one of its program's own.
        std::string distribution;
    };
    std::vector<Segment> segments;
    std::vector<Allocation> allocations;
};

/// How a cache did.
struct CacheStatistics {
    uint64_t size = 0;
    uint64_t free_bytes = 0;
    uint64_t hits = 0;
    uint64_t hits_pending = 0;  ///< of a copy that was under way for somebody else
    uint64_t misses = 0;
    uint64_t evictions = 0;
    uint64_t invalidations = 0;
};

/// What one rank has moved between itself and segments, since it began.
struct TransferCounters {
    uint64_t reads = 0;
    uint64_t bytes_read = 0;
    uint64_t writes = 0;
    uint64_t bytes_written = 0;
};

/// What one rank has done, for people and for programs that show it; see to_json in heddle/memory.hpp.
struct Counters {
    struct OfCache {
        CacheId cache;
        CacheStatistics counters;
    };
    struct OfSegment {
        SegmentId segment;
        std::string kind;
        TransferCounters moved;
    };
    /// Between this rank and the parts that `rank` has of all segments of one kind, deleted ones too.
    struct OfLink {
        std::string kind;
        Rank rank = 0;
        TransferCounters moved;
    };
    Rank rank = 0;
    std::vector<OfCache> caches;
    std::vector<OfSegment> segments;
    std::vector<OfLink> links;
    /// For private copies of what was in the cache already.
    uint64_t bytes_copied_within_caches = 0;
};

/// What ends an operation. See Error for those that any part of heddle throws.
enum class MemoryErrorCode {
    kUnknown,          ///< no such segment, allocation, cache or local range
    kOutside,          ///< beyond the end of its allocation or local range
    kLargerThanCache,  ///< can never fit
    kCacheFull,        ///< all that is in the cache is in use: release something, or try again later
    kSegmentFull,      ///< the segment has not so many bytes left
    kTransfer,         ///< the segment's transport failed
    kCancelled,        ///< the client left, or its bunch failed
};

class HEDDLE_API MemoryError : public Error {
  public:
    MemoryError(MemoryErrorCode code, const std::string& message);
    [[nodiscard]] MemoryErrorCode memory_code() const noexcept { return code_; }

  private:
    MemoryErrorCode code_;
};

}  // namespace heddle::memory

template <>
struct std::hash<heddle::memory::GlobalRange> {
    size_t operator()(const heddle::memory::GlobalRange& global) const noexcept {
        uint64_t mixed = global.data.value * 0x9E3779B97F4A7C15u;
        mixed = (mixed ^ global.range.offset) * 0xFF51AFD7ED558CCDu;
        mixed = (mixed ^ (mixed >> 32u) ^ global.range.size) * 0xC4CEB9FE1A85EC53u;
        return static_cast<size_t>(mixed ^ (mixed >> 32u));
    }
};
