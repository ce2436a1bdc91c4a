#include <fmt/format.h>

#include <algorithm>

#include "heddle/memory_checkpoint.hpp"
#include "memory/checkpoint_file.hpp"

namespace heddle::memory {
namespace {

/// What is read or written at once.
constexpr uint64_t kPiece = 16 * CheckpointFile::kBlock;

/// A cache for pieces of these allocations, as long as they are being moved.
class PieceCache {
  public:
    PieceCache(Client& client, const Inventory& table) : client_(client) {
        uint64_t longest = 0;
        for (const Inventory::Allocation& one : table.allocations) longest = std::max(longest, one.size);
        cache_ = client.create_cache(std::min(longest, kPiece));
    }
    ~PieceCache() {
        try {
            client_.delete_cache(cache_);
        } catch (const Error&) {
            // It goes with its client: the server is gone, or a piece is still being moved.
        }
    }
    PieceCache(const PieceCache&) = delete;
    PieceCache& operator=(const PieceCache&) = delete;
    [[nodiscard]] CacheId id() const noexcept { return cache_; }

  private:
    Client& client_;
    CacheId cache_;
};

/// Calls with each piece of each allocation, in their order.
template <class Move>
void for_each_piece(const Inventory& table, const Move& move) {
    for (const Inventory::Allocation& one : table.allocations)
        for (uint64_t offset = 0; offset < one.size; offset += kPiece)
            move(one.id, Range{offset, std::min(kPiece, one.size - offset)});
}

Inventory wanted(Inventory all, const std::vector<SegmentId>& segments) {
    if (segments.empty()) return all;
    const auto is_wanted = [&](SegmentId id) { return std::ranges::find(segments, id) != segments.end(); };
    std::erase_if(all.segments, [&](const auto& one) { return !is_wanted(one.id); });
    std::erase_if(all.allocations, [&](const auto& one) { return !is_wanted(one.segment); });
    for (const SegmentId id : segments)
        if (std::ranges::find(all.segments, id, &Inventory::Segment::id) == all.segments.end())
            throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no segment {} to keep", id.value));
    return all;
}

DataDescription description_of(const Inventory::Allocation& one, const RestoreOptions& options) {
    if (options.data) return *options.data;
    if (one.distribution.empty()) return {};
    return {one.distribution, {}};
}

void undo(Client& client, const Restored& made) {
    const auto undone = [](const auto& undo_one) {
        try {
            undo_one();
        } catch (const Error&) {
            // A rank or the server is gone, or somebody was first: the first error is the one to tell.
        }
    };
    for (const auto& [before, id] : made.data) undone([&, id = id] { client.free(id); });
    for (const auto& [before, id] : made.segments) undone([&, id = id] { client.delete_segment(id); });
}

}  // namespace

void checkpoint(Client& client, const std::string& path, const std::vector<SegmentId>& segments) {
    const Inventory table = wanted(client.inventory(), segments);
    CheckpointWriter file(path, table);
    const PieceCache cache(client, table);
    for_each_piece(table, [&](DataId data, const Range& range) {
        const ConstLocalRange piece = client.get_const({data, range}, cache.id());
        try {
            file.write({piece.pointer(), range.size});
        } catch (...) {
            client.release(piece);
            throw;
        }
        client.release(piece);
    });
    file.keep();
}

Restored restore(Client& client, const std::string& path, const RestoreOptions& options) {
    CheckpointReader file(path);
    const Inventory& table = file.table();
    Restored made;
    try {
        for (const Inventory::Segment& one : table.segments)
            made.segments[one.id] = client.create_segment(
                one.size, options.segments.value_or(SegmentDescription{one.kind, one.options}));
        for (const Inventory::Allocation& one : table.allocations)
            made.data[one.id] =
                client.allocate(one.size, made.segments.at(one.segment), description_of(one, options));
        const PieceCache cache(client, table);
        for_each_piece(table, [&](DataId data, const Range& range) {
            const MutableLocalRange piece = client.allocate_local(range.size, cache.id());
            try {
                file.read({piece.pointer(), range.size});
                client.put_and_release(piece, {made.data.at(data), range});
            } catch (...) {
                client.release(piece);
                throw;
            }
        });
    } catch (...) {
        undo(client, made);
        throw;
    }
    return made;
}

}  // namespace heddle::memory
