// Checkpoints: segments with all that is in them, in one file, and back into a group of servers with any
// number of ranks (docs/CHECKPOINT.md).
//
//     checkpoint(client, "state.hdl");                       // by one rank, while the others wait for it
//     const Restored there = restore(client, "state.hdl");   // days later, on more ranks
//     client.get_const({there.data.at(old_id), {0, 100}}, cache);
//
// One client does all of it, and reads or writes one piece of 4 MiB after the other by ordinary gets and
// puts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "heddle/memory.hpp"

namespace heddle::memory {

/// Writes these segments, or all that there are, with their allocations. Each piece is of one moment; all
/// are, where nobody puts meanwhile: let the ranks meet before it and after it (Collective::barrier). The
/// file is there when this returns, in the place of an older one, and what ends it leaves the older one.
/// Throws Error kInvalidArgument for a segment that is not there, kSystem where the file cannot be written,
/// and as Client::get_const.
HEDDLE_API void checkpoint(Client& client, const std::string& path,
                           const std::vector<SegmentId>& segments = {});

struct RestoreOptions {
    /// What all segments are to be; else each is what it was.
    std::optional<SegmentDescription> segments = {};
    /// How all allocations are to be spread; else each as it was, or equally where its program did that.
    std::optional<DataDescription> data = {};
};

/// What came of what, by the numbers at the time of the checkpoint: those of new ones are others.
struct Restored {
    std::map<SegmentId, SegmentId> segments;
    std::map<DataId, DataId> data;
};

/// Creates the segments of a checkpoint and all that was in them; marks (tags) are not restored. Where it
/// fails nothing stays. Throws Error kBadInput where the file is no checkpoint, or was cut or altered, with
/// where; kVersionMismatch, kSystem, and as Client::create_segment and Client::allocate.
[[nodiscard]] HEDDLE_API Restored restore(Client& client, const std::string& path,
                                          const RestoreOptions& options = {});

}  // namespace heddle::memory
