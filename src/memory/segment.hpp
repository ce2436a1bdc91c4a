// Segment: memory of one kind, a part of it on each rank; and SegmentKind, what makes them. A new kind is one
// folder below segments/ and one line in segment_kinds.cpp; one with a dependency of its own is a plug-in
// (segment_plug_in.hpp).
//
// read() and write() may be called by any thread, several at a time; what they move never overlaps with a
// write.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heddle/memory_types.hpp"

namespace heddle::memory {

class Segment {
  public:
    virtual ~Segment() = default;
    /// This rank's part, or null where it has no address.
    [[nodiscard]] virtual std::byte* address() noexcept = 0;
    /// How the other ranks reach this part.
    [[nodiscard]] virtual std::string contact() const = 0;
    /// What contact() said on all ranks. Before the first read or write. Throws Error kSystem.
    virtual void attach(const std::vector<std::string>& contacts) = 0;
    /// All ranks have attached it: contact() is of no use any more.
    virtual void seal() {}
    /// From a rank's part. Throws Error kSystem.
    virtual void read(Rank rank, uint64_t offset, std::byte* to, uint64_t size) = 0;
    virtual void write(Rank rank, uint64_t offset, const std::byte* from, uint64_t size) = 0;
    /// Throws what a write there would for want of room, or as what lies there is damaged: called for all
    /// parts of a put that has several, before the first is written, as all of it is to be written or
    /// nothing.
    virtual void prepare_write(Rank /*rank*/, uint64_t /*offset*/, uint64_t /*size*/) {}
};

/// What a new segment is to be.
struct SegmentPlan {
    SegmentId id;
    Rank self = 0;
    std::vector<uint64_t> part_sizes;
    std::map<std::string, std::string> options;

    /// Throws kInvalidArgument where one is missing, or one is there that is not among `known`.
    [[nodiscard]] std::string option(const std::string& name) const;
    /// One of `words`; the first one where it is missing. Throws for another one.
    [[nodiscard]] std::string option(const std::string& name, const std::vector<std::string>& words) const;
    void allow_only(const std::vector<std::string>& known, const std::string& kind) const;
};

struct SegmentKind {
    std::string name;
    /// Throws Error: kInvalidArgument for options that cannot be, kSystem.
    std::unique_ptr<Segment> (*create)(const SegmentPlan& plan);
};

/// Loads plug-ins. Throws kInvalidArgument with the names that there are, kUnavailable for one that is not to
/// be had here.
[[nodiscard]] const SegmentKind& find_segment_kind(const std::string& name);

[[nodiscard]] std::unique_ptr<Segment> create_shm_segment(const SegmentPlan& plan);
[[nodiscard]] std::unique_ptr<Segment> create_file_segment(const SegmentPlan& plan);

}  // namespace heddle::memory
